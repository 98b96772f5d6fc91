package wait

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/status"
	"monopod/manifests/poduid"
)

// scene is what the agent says until then, 0: for ever; do happens when it begins.
type scene struct {
	until time.Duration
	files []status.File
	pods  []v1.Pod
	do    func()
	err   error

	stable time.Duration // that the agent says; 0: it says none
}

// film answers as its scenes say.
func film(dir string, scenes []scene) func(context.Context) (*client.Known, error) {
	start := time.Now()
	return func(context.Context) (*client.Known, error) {
		for k := range scenes {
			s := &scenes[k]
			if s.until > 0 && time.Since(start) >= s.until {
				continue
			}
			if s.do != nil {
				s.do()
				s.do = nil
			}
			m := status.Manifests{Dir: dir}
			m.UpdateStable.Duration = s.stable
			for _, f := range s.files {
				if f.Path = filepath.Join(dir, f.Path); f.State == "leaving" {
					m.Leaving = append(m.Leaving, f)
				} else {
					m.Files = append(m.Files, f)
				}
			}
			return &client.Known{Pods: s.pods, Manifests: m}, s.err
		}
		panic("the film is over")
	}
}

func sumOfText(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// read is a file that was read with that text, and its version of web.
func read(text string, state status.State, hash string) status.File {
	v := status.Version{Pod: "default/web-n1", State: state, Hash: poduid.ContentHash(hash)}
	if state != status.Accepted {
		v.Reason = "for a reason"
	}
	return status.File{Path: "web.yaml", State: state, SHA256: sumOfText(text), Versions: []status.Version{v}}
}

// web is the reported pod of that hash.
func web(hash string, phase v1.PodPhase, ready bool) []v1.Pod {
	p := v1.Pod{}
	p.Namespace, p.Name, p.Spec.NodeName = "default", "web-n1", "n1"
	p.Annotations = map[string]string{poduid.AnnotationHash: hash}
	p.Spec.Containers = []v1.Container{{Name: "main"}}
	if p.Status.Phase = phase; ready {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	}
	return []v1.Pod{p}
}

// tried is the file with its version on trial.
func tried(state status.State, trial status.Trial) status.File {
	f := read("new", state, "2")
	f.Versions[0].Trial = trial
	if trial == status.TrialFailed {
		f.Versions[0].Reason, f.Versions[0].Output, f.Versions[0].Running = "update rolled back: it crashed", "main: one\nmain: \x1b[2Jtwo", "1"
	}
	return f
}

// since says when the pods became ready, after so long.
func since(after time.Duration, pods []v1.Pod) []v1.Pod {
	for k := range pods {
		pods[k].Status.Conditions[0].LastTransitionTime = metav1.Time{Time: epoch.Add(after)}
	}
	return pods
}

// epoch is when each test begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// saying says what else there is to say of the pods.
func saying(line string, pods []v1.Pod) []v1.Pod {
	for k := range pods {
		status.SetProblems(&pods[k], []string{line})
	}
	return pods
}

// stopped says that the owner has stopped the pods.
func stopped(pods []v1.Pod) []v1.Pod {
	for k := range pods {
		pods[k].Status.Reason, pods[k].Status.Message = status.ReasonStopped, "stopped by request"
	}
	return pods
}

func one(files ...status.File) []status.File { return files }

func TestWait(t *testing.T) {
	running, late := v1.PodRunning, 10*time.Second
	ready1, ready2 := web("1", running, true), web("2", running, true)
	rejected := read("new", status.Rejected, "")
	rejected.Problems = []status.Problem{{File: "/m/web.yaml", Line: 3, Column: 5, Field: "spec.x", Message: "unknown field"}}
	rows := []struct {
		what, names, outcome string
		scenes               []scene
		took                 time.Duration
		err                  string
	}{
		{"accepted is not the content before", "web.yaml", "accepted", []scene{{until: time.Second, files: one(read("old", status.Accepted, "1")), pods: ready1},
			{files: one(read("new", status.Accepted, "2")), pods: ready1}}, 1200 * time.Millisecond, ""},
		{"accepted by an agent that comes yet", "web.yaml", "accepted", []scene{{until: time.Second, err: syscall.ECONNREFUSED}, {files: one(read("new", status.Accepted, "2"))}}, 1200 * time.Millisecond, ""},
		{"accepted though it waits", "web.yaml", "accepted", []scene{{files: one(read("new", status.Waiting, "2"))}}, 0, ""},
		{"rejected", "web.yaml", "accepted", []scene{{until: time.Second, files: one(read("old", status.Accepted, "1"))}, {files: one(rejected), pods: ready1}}, 1200 * time.Millisecond,
			"web.yaml is rejected: /m/web.yaml:3:5: spec.x: unknown field"},
		{"superseded", "web.yaml", "updated", []scene{{files: one(read("new", status.Superseded, "2"))}}, 0, "web.yaml is superseded: default/web-n1: for a reason"},
		{"a rejection of the content before", "web.yaml", "updated", []scene{{until: time.Second, files: one(read("old", status.Rejected, ""))},
			{files: one(read("new", status.Accepted, "2")), pods: ready2}}, 1200 * time.Millisecond, ""},
		{"updated is not what ran before", "web.yaml", "updated", []scene{{until: time.Second, files: one(read("old", status.Accepted, "1")), pods: ready1},
			{until: 2 * time.Second, files: one(read("new", status.Accepted, "2")), pods: ready1}, {until: 3 * time.Second, files: one(read("new", status.Accepted, "2")), pods: web("2", running, false)},
			{files: one(read("new", status.Accepted, "2")), pods: ready2}}, 3 * time.Second, ""},
		{"updated and succeeded", "web.yaml", "updated", []scene{{files: one(read("new", status.Accepted, "2")), pods: web("2", v1.PodSucceeded, false)}}, 0, ""},
		{"updated and failed", "web.yaml", "updated", []scene{{files: one(read("new", status.Accepted, "2")), pods: web("2", v1.PodFailed, false)}}, 0,
			"default/web-n1 is not updated and will not be: it has failed: "},
		{"ready, of a stopped pod", "web.yaml", "ready", []scene{{files: one(read("new", status.Accepted, "2")), pods: stopped(web("2", v1.PodPending, false))}}, 0,
			"default/web-n1 is not ready and will not be: it is stopped by request"},
		{"ready, of a pod that is stopping and looks so still", "web.yaml", "ready", []scene{{files: one(read("new", status.Accepted, "2")), pods: stopped(web("2", running, true))}}, 0,
			"default/web-n1 is not ready and will not be: it is stopped by request"},
		{"updated, of a stopped pod", "web.yaml", "updated", []scene{{files: one(read("new", status.Accepted, "2")), pods: stopped(web("2", v1.PodPending, false))}}, 0,
			"default/web-n1 is not updated and will not be: it is stopped by request"},
		{"updated, of a pod that is stopped in the version before", "web.yaml", "updated", []scene{{files: one(read("new", status.Waiting, "2")), pods: stopped(web("1", v1.PodPending, false))}}, 0,
			"default/web-n1 is not updated and will not be: it is stopped by request"},
		{"accepted, of a stopped pod", "web.yaml", "accepted", []scene{{files: one(read("new", status.Accepted, "2")), pods: stopped(web("2", v1.PodPending, false))}}, 0, ""},
		{"a pod, updated, that is stopped", "web", "updated", []scene{{files: one(read("new", status.Accepted, "2")), pods: stopped(web("2", v1.PodPending, false))}}, 0,
			"default/web is not updated and will not be: it is stopped by request"},
		{"updated waits", "web.yaml", "updated", []scene{{files: one(read("new", status.Waiting, "2")), pods: ready1}}, late, "not updated within 10s: default/web-n1: for a reason"},
		{"not admitted is not failed", "web.yaml", "updated", []scene{{files: one(read("new", status.Waiting, "2")), pods: web("2", v1.PodFailed, false)}}, late, "not updated within 10s: default/web-n1: for a reason"},
		{"ready is of the content, in any version", "web.yaml", "ready", []scene{{until: time.Second, files: one(read("old", status.Accepted, "1")), pods: ready1},
			{files: one(read("new", status.Waiting, "2")), pods: ready1}}, 1200 * time.Millisecond, ""},
		{"a file that was changed since", "dir/web.yaml", "updated", []scene{{files: one(read("later", status.Accepted, "1")), do: func() { put(t, "dir/web.yaml", "later") }}}, 0,
			"DIR/web.yaml was changed after the wait began: wait for what it says now"},
		{"other content in the folder", "web.yaml", "accepted", []scene{{files: one(read("later", status.Accepted, "1"))}}, late,
			"not accepted within 10s: the agent has read other content of DIR/web.yaml, and not yet that of HERE/web.yaml"},
		{"a file that comes yet", "late.yaml", "accepted", []scene{{until: time.Second}, {files: one(status.File{Path: "late.yaml", State: status.Accepted, SHA256: sumOfText("x")}), do: func() { put(t, "dir/late.yaml", "x") }}}, 1200 * time.Millisecond, ""},
		{"a file that does not come", "late.yaml", "accepted", []scene{{}}, late, "not accepted within 10s: late.yaml is neither at HERE/late.yaml nor at DIR/late.yaml"},
		{"an agent that does not say what it has read", "web.yaml", "accepted", []scene{{files: one(status.File{Path: "web.yaml"})}}, 0,
			"the agent is of a version that does not say what it has read: update it, or wait for the pods"},
		{"by a link", "link.json", "accepted", []scene{{files: one(read("new", status.Accepted, "2"))}}, 0, ""},
		{"removed", "gone.yaml", "removed", []scene{{until: time.Second, files: one(status.File{Path: "gone.yaml"})},
			{until: 2 * time.Second, files: one(status.File{Path: "gone.yaml", State: "leaving", Pods: []string{"default/web-n1"}})}, {}}, 2100 * time.Millisecond, ""},
		{"removed, but it is there", "web.yaml", "removed", []scene{{}}, late, "not removed within 10s: DIR/web.yaml is still there"},
		{"removed, but its pod is not", "gone.yaml", "removed", []scene{{files: one(status.File{Path: "gone.yaml", State: "leaving", Pods: []string{"default/web-n1"}})}}, late,
			"not removed within 10s: these are being stopped: default/web-n1"},
		{"a pod, updated", "web", "updated", []scene{{until: time.Second, files: one(read("new", status.Waiting, "2")), pods: ready1}, {files: one(read("new", status.Accepted, "2")), pods: ready2}}, 1200 * time.Millisecond, ""},
		{"a pod whose file was changed right before", "web", "updated", []scene{{until: time.Second, files: one(read("old", status.Accepted, "1")), pods: ready1}, {files: one(read("new", status.Accepted, "2")), pods: ready2}}, 1200 * time.Millisecond, ""},
		{"a pod of the namespace whose file was changed right before", "", "updated", []scene{{until: time.Second, files: one(read("old", status.Accepted, "1")), pods: ready1}, {files: one(read("new", status.Accepted, "2")), pods: ready2}}, 1200 * time.Millisecond, ""},
		{"a pod whose file is not read", "web", "accepted", []scene{{files: one(read("old", status.Accepted, "1")), pods: ready1}}, late, "not accepted within 10s: the agent has not read DIR/web.yaml yet"},
		{"a pod whose file is gone", "web", "updated", []scene{{files: one(read("old", status.Accepted, "1")), pods: ready1, do: func() { os.Remove("dir/web.yaml") }}}, 0, ""},
		{"a pod whose manifest is rejected", "web", "accepted", []scene{{files: one(read("new", status.Rejected, "")), pods: ready1}}, 0,
			"default/web is not accepted and will not be: its manifest is rejected: for a reason"},
		{"a pod that never ran", "web-n1", "accepted", []scene{{files: one(read("new", status.Waiting, "2"))}}, 0, ""},
		{"a pod that is not known", "db", "updated", []scene{{files: one(read("new", status.Accepted, "2")), pods: ready2}}, late, `not updated within 10s: `},
		{"updated, on trial", "web.yaml", "updated", []scene{{until: time.Second, files: one(tried(status.Accepted, status.TrialOn)), pods: ready2}, {files: one(tried(status.Accepted, status.TrialPassed)), pods: since(time.Second, web("2", running, true))}}, 1200 * time.Millisecond, ""},
		{"a trial of what is not ready as a whole", "web", "updated", []scene{{files: one(tried(status.Accepted, status.TrialPassed)), pods: web("2", running, false)}}, 0, ""},
		{"a trial that does not end in time", "web.yaml", "updated", []scene{{files: one(tried(status.Accepted, status.TrialOn)), pods: ready2}}, late, "not updated within 10s: default/web-n1: it is not certain yet that it works"},
		{"a file that gave way", "web.yaml", "updated", []scene{{files: one(tried(status.Rejected, status.TrialFailed)), pods: ready1}}, 0,
			"default/web-n1 is not updated and will not be: update rolled back: it crashed; its last output:\n    main: one\n    main: [2Jtwo"},
		{"a pod that gave way", "web", "updated", []scene{{until: time.Second, files: one(tried(status.Accepted, status.TrialOn)), pods: ready2}, {files: one(tried(status.Rejected, status.TrialFailed)), pods: ready1}}, 1200 * time.Millisecond,
			"default/web is not updated and will not be: update rolled back: it crashed; its last output:\n    main: one\n    main: [2Jtwo"},
		{"ready for as long as the agent asks", "web.yaml", "updated", []scene{{files: one(read("new", status.Accepted, "2")), pods: since(2*time.Second, web("2", running, true)), stable: 3 * time.Second}}, 5100 * time.Millisecond, ""},
		{"not ready for as long as an agent asks that does not say", "web", "updated", []scene{{files: one(read("new", status.Accepted, "2")), pods: since(time.Second, web("2", running, true))}}, late,
			"not updated within 10s: default/web: it has not been ready for 10s yet"},
		{"what ps says", "web.yaml", "updated", []scene{{files: one(read("new", status.Waiting, "2")), pods: saying("update waits: held for a reason", web("1", running, true))}}, late,
			"not updated within 10s: default/web: update waits: held for a reason"},
		{"what ps says, and the file", "web", "updated", []scene{{files: one(read("new", status.Waiting, "2")), pods: saying("container main: its probe fails", web("1", running, true))}}, late,
			"not updated within 10s: default/web: container main: its probe fails; default/web: for a reason"},
		{"root only", "web.yaml", "accepted", []scene{{err: syscall.EACCES}}, 0, "permission denied"},
		{"no outcome of a file", "web.yaml", "failed", nil, 0, "--for failed is not for the file web.yaml: choose ready, removed, accepted or updated, or name its pods"},
	}
	for _, r := range rows {
		t.Run(r.what, func(t *testing.T) {
			here := t.TempDir()
			t.Chdir(here)
			if err := errors.Join(os.Mkdir("dir", 0o755), os.Symlink("dir/web.yaml", "link.json")); err != nil {
				t.Fatal(err)
			}
			put(t, "dir/web.yaml", "new")
			put(t, "web.yaml", "new")
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var out, errs bytes.Buffer
				o := Options{WaitOptions: client.WaitOptions{Choice: client.Choice{Names: strings.Fields(r.names)}, For: r.outcome, Timeout: late, Out: &out, Err: &errs},
					ask: film(filepath.Join(here, "dir"), r.scenes)}
				err := Run(t.Context(), o)
				want := strings.NewReplacer("DIR", here+"/dir", "HERE", here).Replace(r.err)
				if got, took := clitest.Text(err), time.Since(begin); (want == "") != (got == "") || !strings.HasPrefix(got, want) || took != r.took {
					t.Errorf("after %s: %s\nwant %s: %s", took, got, r.took, want)
				}
				if errors.Is(err, client.ErrTimeout) != (r.took == late) {
					t.Errorf("%v", err)
				}
				if err == nil && !strings.Contains(out.String(), ": "+r.outcome+"\n") {
					t.Errorf("printed %q", out.String())
				}
			})
		})
	}
}

func put(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Of several folders a file is the agent's by the folder that it is in, else by that which wins.
func TestAFileIsFoundInEachOfSeveralFolders(t *testing.T) {
	home := t.TempDir()
	low, high := filepath.Join(home, "usr"), filepath.Join(home, "etc")
	for _, path := range []string{low + "/web.yaml", low + "/db.yaml", high + "/web.yaml", home + "/web.yaml", home + "/db.yaml", home + "/none.yaml"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	m := status.Manifests{Dir: low, Dirs: []string{low, high}}
	for path, want := range map[string]string{low + "/web.yaml": low + "/web.yaml", high + "/web.yaml": high + "/web.yaml", high + "/new.yaml": high + "/new.yaml",
		home + "/web.yaml": high + "/web.yaml", home + "/db.yaml": low + "/db.yaml", home + "/none.yaml": low + "/none.yaml"} {
		if got := (&file{path: path}).target(m); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// What is masked never becomes what it is waited for.
func TestAMaskedFileIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(path, []byte("kind: Pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &file{given: "web.yaml", path: path}
	known := &client.Known{Manifests: status.Manifests{Dir: filepath.Dir(path), Files: []status.File{{Path: path, State: status.Masked, MaskedBy: "/etc/web.yaml"}}}}
	if v := f.judge("accepted", known); fmt.Sprint(v.never) != "web.yaml is masked by /etc/web.yaml" {
		t.Errorf("%+v", v)
	}
}
