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
		{"written where it leads to, in another folder", linked, write("../site/config.yaml", "b")},
		{"replaced where it leads to, in another folder", linked, func(dir, path string) error {
			return errors.Join(write("../site/.tmp", "b")(dir, path), os.Rename(dir+"/../site/.tmp", dir+"/../site/config.yaml"))
		}},
		{"made where it leads to", func(dir, path string) error {
			return errors.Join(linked(dir, path), os.Remove(dir+"/../site/config.yaml"))
		}, write("../site/config.yaml", "b")},
		{"with its folder, which is a link that is led elsewhere", func(dir, path string) error {
			return errors.Join(os.Rename(dir, dir+".1"), write("../etc.1/config.yaml", "a")(dir+".1", path), os.Symlink("etc.1", dir), os.Mkdir(dir+".2", 0o755))
		}, func(dir, path string) error {
			return errors.Join(write("../etc.2/config.yaml", "b")(dir, path), os.Symlink("etc.2", dir+".tmp"), os.Rename(dir+".tmp", dir))
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

// linked makes the file a link to another in a folder beside its own.
func linked(dir, path string) error {
	return errors.Join(os.Mkdir(dir+"/../site", 0o755), write("../site/config.yaml", "a")(dir, path), os.Symlink("../site/config.yaml", path))
}

// A link that was led elsewhere is followed to where it leads now.
func TestAFileIsWatchedWhereItLeadsToNow(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	if err := errors.Join(os.Mkdir(dir+"/1", 0o755), os.Mkdir(dir+"/2", 0o755), write("1/config.yaml", "a")(dir, path),
		write("2/config.yaml", "a")(dir, path), os.Symlink("1/config.yaml", path)); err != nil {
		t.Fatal(err)
	}
	w := WatchFile(path)
	defer w.Close()
	if err := errors.Join(os.Symlink("2/config.yaml", dir+"/tmp"), os.Rename(dir+"/tmp", path)); err != nil {
		t.Fatal(err)
	}
	wantTold(t, w, "led elsewhere")
	if err := write("2/config.yaml", "b")(dir, path); err != nil {
		t.Fatal(err)
	}
	wantTold(t, w, "written there")
}

// A path without a folder is one of the working directory.
func TestAFileWithoutAFolderIsWatched(t *testing.T) {
	t.Chdir(t.TempDir())
	w := WatchFile("config.yaml")
	defer w.Close()
	if err := write("config.yaml", "a")(".", ""); err != nil {
		t.Fatal(err)
	}
	wantTold(t, w, "made")
}

// As the settings of an agent in a container often are.
func TestAFileInTheRootFolderIsWatched(t *testing.T) {
	f, err := os.CreateTemp("/", "monopod-test-*.yaml")
	if err != nil {
		t.Skip(err)
	}
	defer os.Remove(f.Name())
	w := WatchFile(f.Name())
	defer w.Close()
	if _, err := f.WriteString("a"); err != nil {
		t.Fatal(err)
	}
	wantTold(t, w, "written")
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
