package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/disk"
	"monopod/agent/update"
	"monopod/cgroups"
	"monopod/manifests"
)

// reread returns a checkpoint as a restarted agent reads it.
func reread(t *testing.T, c *Checkpoint) *Checkpoint {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var read Checkpoint
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	return &read
}

// How long an instance has been going does not depend on the machine's clock.
func TestRemovalTimeIgnoresTheClock(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 999_999_999, time.UTC)
	mark := Mark{Boot: "b", Up: time.Hour}
	c := reread(t, (&Checkpoint{Pod: &v1.Pod{}}).Removing(metav1.NewTime(at), mark))
	for _, tt := range []struct {
		name string
		wall time.Time
		now  Mark
		want time.Duration
	}{
		{"ten seconds later", at.Add(10 * time.Second), Mark{"b", time.Hour + 10*time.Second}, 10 * time.Second},
		{"the clock was set back a year", at.AddDate(-1, 0, 0), Mark{"b", time.Hour + 10*time.Second}, 10 * time.Second},
		{"the clock was set on a year", at.AddDate(1, 0, 0), Mark{"b", time.Hour + 10*time.Second}, 10 * time.Second},
		{"in another boot it goes by the clock", at.Add(10 * time.Second), Mark{"c", time.Minute}, 9*time.Second + 999_999_999},
		{"and is never negative", at.AddDate(-1, 0, 0), Mark{"c", time.Minute}, 0},
	} {
		if got := c.RemovingFor(tt.wall, tt.now); got != tt.want {
			t.Errorf("%s: going for %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A stored time has whole seconds: counting from it never cuts a grace period short.
func TestAnOldRemovalIsNotCountedTooLong(t *testing.T) {
	for _, at := range []time.Time{
		time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC),
		time.Date(2026, 5, 4, 3, 2, 1, 1, time.UTC),
		time.Date(2026, 5, 4, 3, 2, 1, 999_999_999, time.UTC),
	} {
		c := reread(t, (&Checkpoint{Pod: &v1.Pod{}}).Removing(metav1.NewTime(at), Mark{}))
		if got := c.RemovingFor(at.Add(10*time.Second), Mark{}); got > 10*time.Second || got < 9*time.Second {
			t.Errorf("removed at %s: going for %s after 10s", at, got)
		}
	}
}

func TestActiveTimeAddsUpOverBoots(t *testing.T) {
	c := reread(t, (&Checkpoint{Pod: &v1.Pod{}}).WithActive(time.Minute, Mark{"b", time.Hour}))
	if d, saved := c.Active.At(Mark{"b", time.Hour + time.Second}); d != time.Minute+time.Second || !saved {
		t.Errorf("in the same boot: %s, %t", d, saved)
	}
	if d, saved := c.Active.At(Mark{"c", 5 * time.Hour}); d != time.Minute || saved {
		t.Errorf("in another boot: %s, %t", d, saved)
	}
}

// Where the kernel does not say which boot it is, active time counts all the same.
func TestActiveTimeCountsWhereNoBootIsKnown(t *testing.T) {
	for _, row := range []struct {
		name   string
		mark   Mark
		now    Mark
		want   time.Duration
		counts bool
	}{
		{"in what may be the same boot", Mark{"", time.Hour}, Mark{"", time.Hour + time.Second}, time.Minute + time.Second, true},
		{"at once", Mark{"", time.Hour}, Mark{"", time.Hour}, time.Minute, true},
		{"not in a boot that is younger", Mark{"", time.Hour}, Mark{"", time.Minute}, time.Minute, false},
		{"not while it stands still", Mark{}, Mark{"", time.Hour}, time.Minute, false},
		{"not from a boot that is not known to one that is", Mark{"", time.Hour}, Mark{"b", 2 * time.Hour}, time.Minute, false},
		{"nor from one that is to one that is not", Mark{"b", time.Hour}, Mark{"", 2 * time.Hour}, time.Minute, false},
		{"not by a clock that cannot be read", Mark{}, Mark{}, time.Minute, false},
	} {
		c := reread(t, (&Checkpoint{Pod: &v1.Pod{}}).WithActive(time.Minute, row.mark))
		if d, counts := c.Active.At(row.now); d != row.want || counts != row.counts {
			t.Errorf("%s: %s, %t", row.name, d, counts)
		}
	}
}

// What need not survive a power cut costs one fsync, not two.
func TestALightSaveSyncsOnce(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	c := NewCheckpoint(&manifests.Pod{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "0123456789abcdef0123456789abcdef"}}, File: "/m/a.yaml"}, metav1.Now())
	for _, row := range []struct {
		name string
		save func(*Checkpoint) error
		want int64
	}{{"a save", r.Save, 2}, {"a light one", r.SaveLightly, 1},
		{"a light one of an interruption", func(c *Checkpoint) error { return r.SaveLightly(c.Interrupted("s1")) }, 2}} {
		before := disk.WrittenSoFar().Syncs
		if err := row.save(c); err != nil {
			t.Fatal(err)
		}
		if n := disk.WrittenSoFar().Syncs - before; n != row.want {
			t.Errorf("%s is synced with %d calls, want %d", row.name, n, row.want)
		}
	}
	if all, err := r.Checkpoints(slog.New(slog.DiscardHandler)); err != nil || len(all) != 1 || all[0].Key() != c.Key() {
		t.Errorf("read back: %v, %v", all, err)
	}
}

// The bound of a pod's files is not for versions that former agents accepted: their
// checkpoints have no mark. The mark outlasts the agent, and follows the version.
func TestAVersionOfAFormerAgentIsNotBounded(t *testing.T) {
	next := &manifests.Pod{Pod: &v1.Pod{}}
	now := reread(t, NewCheckpoint(next, metav1.Now()))
	if now.Version().Unbounded || now.manifest().Unbounded {
		t.Error("a version of this agent is not bounded")
	}
	older := reread(t, &Checkpoint{Pod: &v1.Pod{}})
	if !older.Version().Unbounded || !older.manifest().Unbounded {
		t.Error("a version of a former agent is bounded")
	}
	if c := reread(t, NewCheckpoint(older.manifest(), metav1.Now())); !c.Version().Unbounded {
		t.Error("it is once it is accepted again")
	}
	if c := older.Updated(next, update.Verdict{}, cgroups.Resources{}, nil); !c.Version().Unbounded {
		t.Error("it is once its manifest is written otherwise")
	}
	if c := older.Updated(next, update.Verdict{Kind: update.Live}, cgroups.Resources{}, nil); c.Version().Unbounded {
		t.Error("its next version is not bounded")
	}
}

// An interruption outlasts the agent, with what it ends, and adds up.
func TestAnInterruptionSaysWhatItEnds(t *testing.T) {
	c := reread(t, (&Checkpoint{Pod: &v1.Pod{}, Boot: "a"}).Interrupted("s1", "c", "d").WithActive(time.Minute, Mark{}))
	if !c.IsInterrupted() || c.ReplaceSandbox != "s1" || c.Excused["c"] != 1 || c.Excused["d"] != 1 {
		t.Errorf("%+v", c)
	}
	if d, counts := c.ActiveFor(Mark{Boot: "a", Up: time.Hour}); d != time.Minute || counts {
		t.Errorf("active for %s, which goes on: %t", d, counts)
	}
	c = c.InBoot(Boot{ID: "a"}).Interrupted("", "c")
	if !c.IsInterrupted() || c.ReplaceSandbox != "s1" || c.Excused["c"] != 2 || c.Excused["d"] != 1 {
		t.Errorf("once more: %+v", c)
	}
}

// A former agent finds in a checkpoint all that it knew, with the meaning that it had.
func TestAFormerAgentReadsACheckpoint(t *testing.T) {
	c := NewCheckpoint(&manifests.Pod{Pod: &v1.Pod{}, File: "/m/a.yaml"}, metav1.Now()).Interrupted("s1", "c").WithActive(time.Minute, Mark{})
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var former struct {
		Boot   string `json:"boot"`
		Renew  string `json:"renew"`
		Active *struct {
			Mark
			Before time.Duration `json:"before"`
		} `json:"active"`
	}
	if err := json.Unmarshal(b, &former); err != nil {
		t.Fatal(err)
	}
	if former.Boot != "none" || former.Renew != "s1" { // it starts from nothing, in a new sandbox
		t.Errorf("%+v", former)
	}
	if a := former.Active; a == nil || a.Before != time.Minute || a.Boot != "" { // it counts on from there
		t.Errorf("active: %+v", a)
	}
}

// An agent that is killed while it writes leaves files that are never read.
func TestWhatKilledAgentsWereWritingGoes(t *testing.T) {
	r, err := OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Save(NewCheckpoint(&manifests.Pod{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u1"}}}, metav1.Now())); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, dir := range []string{"", objectsDir, updatesDir, historyDir, "pods/u1"} {
		if err := os.MkdirAll(r.Path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		left = append(left, r.Path(dir, ".tmp-1"))
	}
	for _, file := range left {
		if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	if r, err = OpenRoot(r.Dir); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, file := range left {
		if Exists(file) {
			t.Errorf("%s is there", file)
		}
	}
	if !Exists(r.checkpoint("u1")) {
		t.Error("the checkpoint went with it")
	}
}

func TestWhetherAnInstanceHasEnded(t *testing.T) {
	for phase, want := range map[v1.PodPhase]v1.PodPhase{"": "", v1.PodPending: "", v1.PodRunning: "", v1.PodSucceeded: v1.PodSucceeded, v1.PodFailed: v1.PodFailed} {
		c := (&Checkpoint{Pod: &v1.Pod{}}).WithEnd(v1.PodStatus{Phase: phase})
		if got := c.Ended(); got != want {
			t.Errorf("phase %q: ended %q", phase, got)
		}
	}
}

func TestWhetherAnInstanceIsOfAnEarlierBoot(t *testing.T) {
	for _, row := range []struct {
		name      string
		boot, now string
		want      bool
	}{
		{"it started in this boot", "b", "b", false},
		{"it started in another one", "a", "b", true},
		{"it was interrupted", noBoot, "b", false},
		{"its boot is not known", "", "b", false},
		{"this boot is not known", "a", "", false},
	} {
		if got := (&Checkpoint{Boot: row.boot}).OfEarlierBoot(Mark{Boot: row.now}); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// A hook that is done is noted beside those of other containers, in a copy.
func TestHooksThatAreDone(t *testing.T) {
	none := &Checkpoint{Pod: &v1.Pod{}}
	one := none.WithHookDone("a", "a0")
	two := one.WithHookDone("b", "b0").WithHookDone("a", "a1")
	if len(none.HooksDone) != 0 || len(one.HooksDone) != 1 || one.HooksDone["a"] != "a0" || len(two.HooksDone) != 2 || two.HooksDone["a"] != "a1" || two.HooksDone["b"] != "b0" {
		t.Errorf("%v, %v and %v", none.HooksDone, one.HooksDone, two.HooksDone)
	}
}

// What is told of a root dir is what is on its disk.
func TestWhatIsStoredIsWhatWasSaved(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	if err := os.WriteFile(r.PodDir("u2"), nil, 0o600); err != nil { // no folder can be made here
		t.Fatal(err)
	}
	if err := r.Save(instanceOf("u2", "img:1", 0)); err == nil || len(r.StoredPods()) != 0 {
		t.Errorf("stored though it was not saved: %v, %v", r.StoredPods(), err)
	}
	if err := r.Save(instanceOf("u1", "img:1", 0)); err != nil || len(r.StoredPods()) != 1 {
		t.Errorf("not stored though it was saved: %v, %v", r.StoredPods(), err)
	}
	r.Forget("u1")
	if len(r.StoredPods()) != 0 {
		t.Errorf("stored though it was forgotten: %v", r.StoredPods())
	}
}

// A file that holds no checkpoint of its pod is left out, and said; others are read.
func TestAnUnusableCheckpointIsLeftOut(t *testing.T) {
	for _, row := range []struct {
		name string
		file func(r *Root) string
		text string // "": that of another pod
		left int
	}{
		{"one that is cut", func(r *Root) string { return r.checkpoint("u2") }, "{", 2},
		{"one of no pod", func(r *Root) string { return r.checkpoint("u2") }, "{}", 2},
		{"one of another pod", func(r *Root) string { return r.checkpoint("u2") }, "", 2},
		{"that of a next version, cut", func(r *Root) string { return r.next("u2") }, "{", 3},
		{"that of a next version, of no pod", func(r *Root) string { return r.next("u2") }, "{}", 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := openTestRoot(t, t.TempDir())
			for _, uid := range []string{"u1", "u2", "u3"} {
				if err := r.Save(instanceOf(uid, "img:1", 0)); err != nil {
					t.Fatal(err)
				}
			}
			var said bytes.Buffer
			log := slog.New(slog.NewTextHandler(&said, nil))
			if all, err := r.Checkpoints(log); len(all) != 3 || err != nil || said.Len() > 0 {
				t.Fatalf("before: %d, %v, said %s", len(all), err, &said)
			}
			text, err := []byte(row.text), error(nil)
			if row.text == "" {
				text, err = os.ReadFile(r.checkpoint("u1"))
			}
			if err = errors.Join(err, os.WriteFile(row.file(r), text, 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, err := PodsIn(r.Dir); err == nil {
				t.Error("another process is told nothing of it")
			}
			all, err := r.Checkpoints(log)
			if len(all) != row.left || err != nil || !strings.Contains(said.String(), "unusable; ignoring it") {
				t.Errorf("%d are read, %v, said %s", len(all), err, &said)
			}
		})
	}
}
