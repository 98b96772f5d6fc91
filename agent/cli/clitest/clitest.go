// Package clitest is what tests of commands share: an agent to query, pages to compare with.
package clitest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/server"
	"monopod/agent/status"
)

// Now is the time of those tests.
var Now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Golden compares got with testdata/<test name>.txt; see Page.
func Golden(t *testing.T, got string) {
	t.Helper()
	name := strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(t.Name(), "Test"))
	Page(t, filepath.Join("testdata", name+".txt"), got)
}

// Page compares got with a file, or writes the file if MONOPOD_UPDATE=1.
func Page(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("MONOPOD_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: printed\n%s\nwant\n%s", path, got, want)
	}
}

// Pods reads pods, written as YAML like a List's items.
func Pods(t *testing.T, text string) (pods []*v1.Pod) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &pods); err != nil {
		t.Fatal(err)
	}
	return pods
}

// Store is a status folder with those pods, which the caller closes.
func Store(t *testing.T, dir string, pods ...*v1.Pod) *status.Store {
	t.Helper()
	store, err := status.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		store.SetPod(p.Namespace+"/"+p.Name, p)
	}
	return store
}

// Agent serves pods, written as for Pods, and the other reports on a socket.
func Agent(t *testing.T, pods string, m status.Manifests, r status.Runtime) (socket string) {
	t.Helper()
	store := Store(t, filepath.Join(t.TempDir(), "status"), Pods(t, pods)...)
	store.SetManifests(m)
	store.SetRuntime(r)
	return Serve(t, server.Config{Store: store})
}

// Serve serves the content of c on a socket until the test ends, and closes its store then.
func Serve(t *testing.T, c server.Config) (socket string) {
	t.Helper()
	c.Socket, c.Log = filepath.Join(t.TempDir(), "s"), slog.New(slog.DiscardHandler)
	s, err := server.Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if c.Store != nil {
			c.Store.Close(context.Background())
		}
	})
	return c.Socket
}

// Previous leaves the report of an agent from half an hour before Now, and returns its root.
func Previous(t *testing.T, pods string, m status.Manifests) (root string) {
	t.Helper()
	root = t.TempDir()
	store := Store(t, filepath.Join(root, "status"), Pods(t, pods)...)
	store.SetManifests(m)
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(root, "status", "pods", "*"))
	for k, f := range append(files, filepath.Join(root, "status", "pods"), filepath.Join(root, "status", "manifests.json")) {
		at := Now.Add(-30*time.Minute - time.Duration(k)*time.Hour)
		if err := os.Chtimes(f, at, at); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return root
}

// Text returns the text of an error, "" for none.
func Text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
