package status

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/manifests/poduid"
)

// fileOf is a report of one file with one pod.
func fileOf(state State, hash string) Manifests {
	return Manifests{Dir: "/m", Files: []File{{Path: "/m/a", State: state, SHA256: hash, Versions: []Version{{Pod: "default/a", State: state, Hash: poduid.ContentHash(hash)}}}}}
}

func TestTheReportOfManifestsFollowsThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		open := func() *Store {
			s, err := Open(dir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open()
		begin := time.Now().UTC().Truncate(time.Second)
		is := func(what string, want Version, since time.Time) {
			t.Helper()
			time.Sleep(2 * gather)
			want.Pod, want.Since = "default/a", since
			f := s.Manifests().Files[0]
			if got := f.Versions[0]; got != want || f.State != got.State || !f.Since.Equal(since) {
				t.Errorf("%s: %+v in %+v, want %+v", what, got, f, want)
			}
			var written Manifests
			data, err := os.ReadFile(filepath.Join(dir, "manifests.json"))
			if err != nil || json.Unmarshal(data, &written) != nil || len(written.Files) != 1 || written.Files[0].Versions[0] != want {
				t.Errorf("%s: written %s, %v", what, data, err)
			}
		}
		report := func(hash string, phase v1.PodPhase) {
			p := testPod("a", phase)
			p.Annotations = map[string]string{poduid.AnnotationHash: hash}
			s.SetPod("default/a", p)
		}
		s.SetManifests(fileOf(Accepted, "1"))
		is("nothing runs", Version{State: Accepted, Hash: "1"}, begin)
		report("1", v1.PodPending)
		is("it is being started", Version{State: Accepted, Hash: "1"}, begin)
		report("1", v1.PodRunning)
		is("it runs", Version{State: Accepted, Hash: "1", Running: "1"}, begin)
		time.Sleep(time.Minute)
		changed := time.Now().UTC().Truncate(time.Second)
		s.SetManifests(fileOf(Accepted, "2"))
		waits := Version{State: Waiting, Reason: "the version before it still runs", Hash: "2", Running: "1", Waiting: "2"}
		is("another version", waits, changed)
		time.Sleep(time.Minute)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s = open()
		defer func() { s.Close(t.Context()) }()
		report("1", v1.PodRunning)
		s.SetManifests(fileOf(Accepted, "2"))
		is("another agent", waits, changed)
		s.RemovePod("default/a")
		later := time.Now().UTC().Truncate(time.Second)
		is("the old one is gone", Version{State: Accepted, Hash: "2"}, later)
	})
}

// What a former agent knows nothing of it leaves alone: it reads the report of a newer one for the
// times since when manifests are as they are.
func TestAFormerAgentReadsTheReportWithVerdicts(t *testing.T) {
	m := Manifests{Dir: "/m", Files: []File{{Path: "/m/web.yaml", State: Rejected, Versions: []Version{
		{Pod: "default/web-n", State: Rejected, Hash: "2", Running: "1", Trial: TrialFailed, Output: "c: it is broken"}}}}}
	m.UpdateStable.Duration = 10 * time.Second
	file := filepath.Join(t.TempDir(), "manifests.json")
	b, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var former struct {
		Dir   string
		Files []struct {
			Path     string
			State    State
			Versions []struct {
				Pod   string
				State State
				Hash  poduid.ContentHash
			}
		}
	}
	if err := disk.ReadOrAside(file, disk.JSON(&former)); err != nil || len(former.Files) != 1 || former.Files[0].Versions[0].Hash != "2" {
		t.Errorf("it reads %+v: %v", former, err)
	}
}
