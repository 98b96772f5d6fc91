package checkpoint

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/disk"
	"monopod/manifests"
)

func TestTheRecordOfAnUpdateIsKept(t *testing.T) {
	root := &Root{Dir: t.TempDir()}
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	if all := root.Updates(log); len(all) > 0 || said.Len() > 0 {
		t.Errorf("%v of an empty root dir, said %s", all, &said)
	}
	long := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("p", 253), UID: "u1"}}
	key := manifests.KeyOf(long)
	want := &Update{Former: long, File: "/m/a.yaml", Images: map[string]string{"c": "sha256:1"}, Tried: long, Reason: "it failed", Output: "c: no such file", Boot: "b", Spent: time.Second}
	if err := root.SaveUpdate(key, want); err != nil {
		t.Fatal(err)
	}
	if all := root.Updates(log); len(all) != 1 || !reflect.DeepEqual(all[0], want) || said.Len() > 0 {
		t.Errorf("%+v, said %s", all, &said)
	}
	files, _ := filepath.Glob(root.Path("updates", "*"))
	if info, err := os.Stat(files[0]); len(files) != 1 || err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", files, err)
	}
	for range 2 {
		if err := root.SaveUpdate(key, nil); err != nil {
			t.Error(err)
		}
	}
	if all := root.Updates(log); len(all) > 0 {
		t.Errorf("%+v after its removal", all)
	}
}

// formerUpdate is the record as an agent before this one knows it.
type formerUpdate struct {
	Former  *v1.Pod           `json:"former"`
	File    string            `json:"file"`
	Bounded bool              `json:"bounded,omitempty"`
	Images  map[string]string `json:"images"`
	Tried   *v1.Pod           `json:"tried,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Boot    string            `json:"boot,omitempty"`
	Spent   time.Duration     `json:"spent,omitempty"`
}

// A former agent goes on with a record of this one, and this one with what that leaves.
func TestTheRecordOfAnUpdateIsReadByAFormerAgent(t *testing.T) {
	root := &Root{Dir: t.TempDir()}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}}
	key := manifests.KeyOf(pod)
	want := &Update{Former: pod, File: "/m/a.yaml", Bounded: true, Images: map[string]string{"c": "sha256:1"}, Tried: pod, Reason: "it failed", Output: "c: no such file", Boot: "b", Spent: time.Second}
	if err := root.SaveUpdate(key, want); err != nil {
		t.Fatal(err)
	}
	var former formerUpdate
	if err := disk.Read(root.updateFile(key), disk.JSON(&former)); err != nil {
		t.Fatal(err)
	}
	if got := (formerUpdate{pod, want.File, true, want.Images, pod, want.Reason, "b", time.Second}); !reflect.DeepEqual(former, got) {
		t.Errorf("it reads %+v", former)
	}
	b, err := json.Marshal(former)
	if err == nil {
		err = disk.WriteFile(root.updateFile(key), disk.Seal(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	want.Output = ""
	if all := root.Updates(slog.New(slog.DiscardHandler)); len(all) != 1 || !reflect.DeepEqual(all[0], want) {
		t.Errorf("%+v", all)
	}
}

func TestAnUnusableRecordOfAnUpdateIsIgnored(t *testing.T) {
	other := `{"former": {"metadata": {"name": "a"}}, "tried": {"metadata": {"name": "b"}}}`
	for _, text := range []string{"", "{", "{}", "[]", other} {
		root := &Root{Dir: t.TempDir()}
		if err := os.MkdirAll(root.Path("updates"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root.Path("updates", "x.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		if all := root.Updates(slog.New(slog.NewTextHandler(&said, nil))); len(all) > 0 || !strings.Contains(said.String(), "unusable; ignoring it") {
			t.Errorf("%q: %v, said %s", text, all, &said)
		}
	}
}

// What a killed agent was writing holds a pod's variables, or who is held: it goes with
// the next start.
func TestFilesThatWereBeingWrittenGo(t *testing.T) {
	dir := t.TempDir()
	for _, at := range []string{"updates", "objects", "history", "."} {
		if err := os.MkdirAll(filepath.Join(dir, at), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, at, ".tmp-1"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, at := range []string{"updates", "objects", "history", "."} {
		if left, _ := filepath.Glob(filepath.Join(dir, at, ".tmp-*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func TestWhoAskedIsSaid(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for why, want := range map[string]string{"": "by request at 2026-05-01 12:00:00 UTC", "audit": "by request at 2026-05-01 12:00:00 UTC: audit"} {
		if got := (&Asked{At: at, Why: why}).String(); got != want {
			t.Errorf("%q: %s", why, got)
		}
	}
}
