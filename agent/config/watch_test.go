package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// wantTold waits until a change is told of.
func wantTold(t *testing.T, w *FileWatch, what string) {
	t.Helper()
	select {
	case <-w.Changed():
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: not told", what)
	}
}

func TestAFileIsWatchedHoweverItChanges(t *testing.T) {
	rows := []struct {
		name   string
		before func(dir, path string) error
		change func(dir, path string) error
	}{
		{"written", write("config.yaml", "a"), write("config.yaml", "b")},
		{"made", nothing, write("config.yaml", "b")},
		{"removed", write("config.yaml", "a"), func(_, path string) error { return os.Remove(path) }},
		{"replaced, as editors do", write("config.yaml", "a"), func(dir, path string) error {
			return errors.Join(write(".config.tmp", "b")(dir, path), os.Rename(dir+"/.config.tmp", path))
		}},
		{"led elsewhere, as ConfigMaps are", func(dir, path string) error {
			return errors.Join(os.Mkdir(dir+"/1", 0o755), write("1/config.yaml", "a")(dir, path), os.Symlink("1", dir+"/..data"), os.Symlink("..data/config.yaml", path))
		}, func(dir, path string) error {
			return errors.Join(os.Mkdir(dir+"/2", 0o755), write("2/config.yaml", "b")(dir, path), os.Symlink("2", dir+"/..tmp"), os.Rename(dir+"/..tmp", dir+"/..data"))
		}},
		{"with its folder", write("config.yaml", "a"), func(dir, path string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755), write("config.yaml", "b")(dir, path))
		}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "etc")
			path := filepath.Join(dir, "config.yaml")
			if err := errors.Join(os.Mkdir(dir, 0o755), r.before(dir, path)); err != nil {
				t.Fatal(err)
			}
			w := WatchFile(path)
			defer w.Close()
			if err := r.change(dir, path); err != nil {
				t.Fatal(err)
			}
			wantTold(t, w, r.name)
		})
	}
}

// A burst of changes is told of once, and what happens to others not at all.
func TestAFileIsLeftAloneBeforeItIsToldOf(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	w := WatchFile(path)
	defer w.Close()
	for range 20 {
		if err := errors.Join(write("config.yaml", "a")(dir, path), write("other.yaml", "a")(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	wantTold(t, w, "a burst")
	if err := write("other.yaml", "b")(dir, path); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.Changed():
		t.Error("told again")
	case <-time.After(2 * quietFor):
	}
}

func TestNoFileIsNeverToldOf(t *testing.T) {
	w := WatchFile("")
	defer w.Close()
	if len(w.Changed()) > 0 {
		t.Error("told")
	}
}

func nothing(string, string) error { return nil }

// write writes a file in the folder in place.
func write(name, text string) func(dir, path string) error {
	return func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
}
