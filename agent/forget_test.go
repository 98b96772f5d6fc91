package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/node"
	"monopod/agent/status"
	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// reader is an agent that reads a folder, on a runtime behind a real socket.
type reader struct {
	*testing.T
	*Agent
	runtime *critest.Runtime
	stop    func()        // ends it; its pods run on
	logged  *bytes.Buffer // complete once it has ended
}

func read(t *testing.T, r *critest.Runtime, root, folder string) *reader {
	t.Helper()
	return readWith(t, r, root, func(c *config.Config) { c.Manifests = []string{folder} })
}

func readWith(t *testing.T, r *critest.Runtime, root string, configure func(*config.Config)) *reader {
	t.Helper()
	cfg := config.Default()
	cfg.NodeName, cfg.Endpoint, cfg.Root, cfg.PodLogs = "n", r.Endpoint(), root, filepath.Join(root, "logs")
	cfg.Socket, cfg.Listen, cfg.ResolvConf, cfg.CgroupDriver = filepath.Join(t.TempDir(), "s"), "", "/dev/null", node.DriverNone
	configure(&cfg)
	log := &bytes.Buffer{}
	a, err := New(cfg, nil, Options{Log: slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), log), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- a.Run(ctx) }()
	w := &reader{T: t, Agent: a, runtime: r, logged: log}
	w.stop = func() {
		cancel()
		if err := <-end; err != nil {
			t.Error(err)
		}
		w.stop = func() {}
	}
	t.Cleanup(func() { w.stop() })
	return w
}

// until waits until something is so.
func (w *reader) until(what string, is func() bool) {
	w.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(deadline) {
			w.Fatalf("it does not come to it that %s: %v run, %+v", what, w.runtime.Running(), w.store.Manifests())
		}
		select {
		case <-w.store.Changes():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// run waits until these pods run, and no others.
func (w *reader) run(names ...string) {
	w.Helper()
	w.until(strings.Join(names, ", ")+" run alone", func() bool {
		got := w.runtime.Running()
		slices.Sort(got)
		return slices.Equal(got, names) && len(w.store.Pods()) == len(names)
	})
}

func (w *reader) doubts() {
	w.Helper()
	w.until("the folder is doubted", func() bool {
		return slices.ContainsFunc(w.store.Manifests().Problems, func(p status.Problem) bool {
			return strings.Contains(p.Message, "is another file system than before") && strings.Contains(p.Message, "monopod forget POD")
		})
	})
	w.until("an event tells of it", func() (told bool) {
		w.events.List("").Each(func(e *v1.Event) bool {
			told = told || strings.Contains(e.Message, "monopod forget POD")
			return true
		})
		return told
	})
}

// away is a folder of manifests whose disk can be taken away.
type away struct{ link, disk, other string }

func newAway(t *testing.T, pods ...string) *away {
	t.Helper()
	other, err := os.MkdirTemp("/dev/shm", "monopod-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	f := &away{filepath.Join(t.TempDir(), "m"), t.TempDir(), other}
	for _, pod := range pods {
		text := manifest(pod, "img:1", "terminationGracePeriodSeconds: 1")
		text = strings.Replace(text, "name: c,", "name: c, lifecycle: {preStop: {exec: {command: [bye]}}},", 1)
		if err := os.WriteFile(filepath.Join(f.disk, pod+".yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f.point(t, f.disk)
	return f
}

func (f *away) point(t *testing.T, to string) {
	t.Helper()
	if err := errors.Join(os.Symlink(to, f.link+".new"), os.Rename(f.link+".new", f.link)); err != nil {
		t.Fatal(err)
	}
}

func TestPodsOutliveTheDiskOfTheirManifests(t *testing.T) {
	r, root, folder := critest.Start(t), t.TempDir(), newAway(t, "a", "b")
	r.AddImage("img:1")
	var goodbyes atomic.Int32
	r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) {
		goodbyes.Add(1)
		return "", 0, nil
	})
	w := read(t, r, root, folder.link)
	w.run("default/a-n/c", "default/b-n/c")
	_, err := w.forget(t.Context(), "default", "a-n")
	if want := "pod default/a-n is not forgotten: its manifest is " + folder.link + "/a.yaml: remove that file"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	w.stop()
	made := r.Count("CreateContainer")

	folder.point(t, folder.other)
	for range 2 { // as after a boot at which the disk is not mounted
		w = read(t, r, root, folder.link)
		w.doubts()
		w.run("default/a-n/c", "default/b-n/c")
		w.stop()
	}

	w = read(t, r, root, folder.link)
	w.doubts()
	if _, err := w.forget(t.Context(), "default", "a-n"); err != nil {
		t.Fatal(err)
	}
	w.run("default/b-n/c")
	if n := goodbyes.Load(); n != 1 {
		t.Errorf("%d preStop hooks ran", n)
	}
	_, err = w.forget(t.Context(), "default", "a-n")
	if refusal := (*status.Refusal)(nil); !errors.As(err, &refusal) || !refusal.Unknown {
		t.Errorf("forgotten twice: %v", err)
	}
	w.stop()

	w = read(t, r, root, folder.link)
	w.doubts()
	w.run("default/b-n/c")
	if n := r.Count("CreateContainer"); n != made {
		t.Errorf("%d containers were made", n-made)
	}
	folder.point(t, folder.disk)
	w.run("default/a-n/c", "default/b-n/c")
	w.stop()
	if twice := r.DoubleRunning(); len(twice) > 0 || goodbyes.Load() != 1 {
		t.Errorf("ran twice at a time: %v, %d preStop hooks ran", twice, goodbyes.Load())
	}
}

// The agent dies before the runtime could be told.
func TestAForgottenPodGoesAfterTheRuntimeWasAway(t *testing.T) {
	r, root, folder := critest.Start(t), t.TempDir(), newAway(t, "a", "b")
	r.AddImage("img:1")
	w := read(t, r, root, folder.link)
	w.run("default/a-n/c", "default/b-n/c")
	w.stop()
	folder.point(t, folder.other)
	r.Stop()
	w = read(t, r, root, folder.link)
	w.doubts()
	if _, err := w.forget(t.Context(), "default", "a-n"); err != nil {
		t.Fatal(err)
	}
	w.stop()
	r.Resume()
	w = read(t, r, root, folder.link)
	w.doubts()
	w.run("default/b-n/c")
}

func TestARecordOfTheFolderThatIsNoUseIsNone(t *testing.T) {
	root, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	log := slog.New(slog.DiscardHandler)
	want := manifests.Record{Folder: &manifests.Folder{Path: "/m", FSID: "1", Inode: 2}, Forgotten: map[string]poduid.ContentHash{"default/a": "u"}}
	if err := root.SaveFolder(want); err != nil {
		t.Fatal(err)
	}
	if got := root.Folder(log); *got.Folder != *want.Folder || got.Forgotten["default/a"] != "u" {
		t.Errorf("read %+v", got)
	}
	for _, text := range []string{"", "{", `{"folder": {"path": "/m", "inode": "x"}}`} {
		if err := os.WriteFile(root.Path("folder.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := root.Folder(log); got.Folder != nil || len(got.Forgotten) > 0 {
			t.Errorf("of %q: %+v", text, got)
		}
	}
}

func TestAConfigMapWhoseFolderIsAwayIsForgotten(t *testing.T) {
	r, root, folder := critest.Start(t), t.TempDir(), newAway(t, "a")
	r.AddImage("img:1")
	noErr(t, os.WriteFile(filepath.Join(folder.disk, "m.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"), 0o600))
	w := read(t, r, root, folder.link)
	w.run("default/a-n/c")
	const name = "configmap/app"
	if _, err := w.forget(t.Context(), "default", name); err == nil || !strings.HasPrefix(err.Error(), "configmap default/app is not forgotten: its manifest is ") {
		t.Errorf("%v", err)
	}
	w.stop()
	folder.point(t, folder.other)
	w = read(t, r, root, folder.link)
	w.doubts()
	left := func() (files []string) {
		for _, f := range w.store.Manifests().Leaving {
			for _, o := range f.Objects {
				files = append(files, o.Kind+" "+o.Name)
			}
		}
		return files
	}
	w.until("the object is listed by its file, which is gone", func() bool { return slices.Equal(left(), []string{"ConfigMap default/app"}) })
	done, err := w.forget(t.Context(), "default", name)
	if err != nil || done.Object != "ConfigMap default/app" {
		t.Fatalf("%+v, %v", done, err)
	}
	w.until("it is gone", func() bool { return len(left()) == 0 })
	if _, err := w.forget(t.Context(), "default", name); err == nil || err.Error() != "there is no configmap default/app" {
		t.Errorf("%v", err)
	}
}
