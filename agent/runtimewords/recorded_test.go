package runtimewords

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recording is what agent/e2e/words wrote of a runtime with an OCI runtime.
type recording struct {
	Runtime, OCI string
	Answers      []struct{ Trouble, Call, Text string }
}

// The causes of the recorded troubles. CRI-O alone checks the memory limit before it starts anything.
func causeOf(trouble string, r recording) (Cause, bool) {
	switch trouble {
	case "missing command", "missing path":
		return NotFound, true
	case "a folder", "a file that is not executable":
		return NotExecutable, true
	case "unknown user":
		return NoUser, true
	case "no such repository", "no such tag":
		return NoImage, true
	case "memory limit too low", "memory limit of the pod too low":
		if strings.HasPrefix(r.Runtime, "cri-o") {
			return MemoryTooLow, true
		}
		return Unknown, true
	case "full disk", "mount of a path that is not there", "mount of a file on a folder":
		return Unknown, true // another disk, or another folder there, ends it
	}
	return Unknown, false
}

// accepted are the troubles that some runtimes do not take for one.
var accepted = map[string]bool{"mount of a path that is not there": true, "memory limit too low": true, "memory limit of the pod too low": true}

func TestWhatRuntimesAnswerIsUnderstood(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range []string{
		"containerd-1.6.*_runc-1.1.*", "containerd-1.7.*_runc-1.3.*", "containerd-1.7.*_crun-1.27*", "containerd-2.4.*_runc-1.3.*",
		"cri-o-1.36.*_runc-1.1.*", "cri-o-1.36.*_runc-1.3.*", "cri-o-1.36.*_crun-1.8*", "cri-o-1.36.*_crun-1.27*",
	} {
		if found, _ := filepath.Glob("testdata/" + pair + ".json"); len(found) == 0 {
			t.Errorf("there is no recording of %s", pair)
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { understood(t, file) })
	}
}

func understood(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Answers); n != 17 {
		t.Errorf("%d answers", n)
	}
	for _, a := range r.Answers {
		want, known := causeOf(a.Trouble, r)
		switch call := callOf(a.Call); {
		case !known:
			t.Errorf("%s: nobody says what that is", a.Trouble)
		case a.Text == "" && accepted[a.Trouble]:
		case a.Text == "":
			t.Errorf("%s: no answer", a.Trouble)
		case Of(call, a.Text) != want:
			t.Errorf("%s: %d, want %d: %s", a.Trouble, Of(call, a.Text), want, a.Text)
		}
	}
}

func callOf(name string) Call {
	switch name {
	case "ExecSync":
		return Exec
	case "PullImage":
		return Image
	}
	return Create
}
