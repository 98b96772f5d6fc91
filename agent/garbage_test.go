package agent

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/gc"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// tree makes files below dir, folders where a path ends in a slash, links where
// there is an arrow.
func tree(t *testing.T, dir string, paths ...string) {
	t.Helper()
	for _, p := range paths {
		link, to, isLink := strings.Cut(p, " -> ")
		path := filepath.Join(dir, link)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(filepath.Join(dir, to), path)
		case strings.HasSuffix(p, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte("x"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// left returns the files, links and empty folders below dir.
func left(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			entries, err := os.ReadDir(path)
			if len(entries) == 0 {
				all = append(all, rel+"/")
			}
			return err
		}
		all = append(all, rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The agent finds what was left behind when it starts, and what comes later a
// minute or two after: not at once, as a pod that is being made looks the same.
func TestCollectsWhatNobodyRemoved(t *testing.T) {
	ours := []string{ // of a pod that is gone
		"pods/aaaa/volumes/kubernetes.io~empty-dir/v/file", "logs/ns_p_aaaa/c/0.log", "logs/ns_p_aaaa/c/0.log.20260102-030405.gz",
		"links/p_ns_c-1.log -> logs/ns_p_aaaa/c/0.log",
	}
	theirs := []string{
		"logs/ns_p_bbbb/c/0.log", "logs/ns_p_bbbb/c/1.log", "logs/ns_p_bbbb/c/2.log", "logs/notes", "logs/a_b/", "links/p_ns_c-2.log -> logs/ns_p_bbbb/c/0.log",
		"links/p_ns_c-3.log -> logs/ns_p_bbbb/c/9.log", "links/p_ns_c-4.log -> elsewhere/ns_p_aaaa/c/9.log",
	}
	liveWith(t, func(r *rig) {
		r.links = filepath.Join(r.dir, "links")
		tree(t, r.dir, append(ours, theirs...)...)
	}, func(r *rig) {
		there := func() []string {
			return slices.DeleteFunc(left(t, r.dir), func(p string) bool {
				return !strings.HasPrefix(p, "pods") && !strings.HasPrefix(p, "l") || p == "lock"
			})
		}
		want := func(when string, more ...string) {
			t.Helper()
			all := append([]string(nil), more...)
			for _, p := range theirs {
				p, _, _ = strings.Cut(p, " -> ")
				all = append(all, p)
			}
			if len(more) == 0 {
				all = append(all, "pods/")
			}
			slices.Sort(all)
			if got := there(); !slices.Equal(got, all) {
				t.Errorf("%s:\ngot  %s\nwant %s", when, got, all)
			}
		}
		r.after(time.Second)
		want("after the start")
		tree(t, r.dir, "pods/cccc/volumes/x", "logs/ns_p_cccc/c/0.log")
		r.after(gc.GarbageEvery)
		want("after a minute", "pods/cccc/volumes/x", "logs/ns_p_cccc/c/0.log")
		r.after(gc.GarbageEvery)
		want("after another")
	})
}

// Containers that somebody else removes leave logs and links behind; those that
// there are, and the last of those that were, keep theirs.
func TestCollectsLogsOfRemovedContainers(t *testing.T) {
	liveWith(t, func(r *rig) {
		r.links = filepath.Join(r.dir, "links")
		r.configure = func(c *config.Config) { c.LogInterval = time.Hour }
	}, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		c, _ := r.Container("web-n/c")
		dir := filepath.Join(r.dir, "logs", "default_web-n_"+c.UID)
		mine := "logs/default_web-n_" + c.UID + "/c/"
		link := filepath.Base(podspec.LogLink("", pleg.KeyOf(map[string]string{podspec.LabelPodNamespace: "default", podspec.LabelPodName: "web-n"}), "c", c.ID))
		if err := os.Rename(filepath.Join(dir, "c", "0.log"), filepath.Join(dir, "c", "0.log.20260102-030405")); err != nil { // as in the midst of a rotation
			t.Fatal(err)
		}
		tree(t, r.dir, mine+"7.log", mine+"6.log", mine+"6.log.20260102-030405.gz", mine+"5.log", mine+"notes",
			"links/gone -> "+mine+"4.log", "links/there -> "+mine+"7.log")
		r.after(gc.GarbageEvery + time.Second)
		if got, want := left(t, filepath.Join(dir, "c")), []string{"0.log.20260102-030405", "6.log", "6.log.20260102-030405.gz", "7.log", "notes"}; !slices.Equal(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got, want := left(t, filepath.Join(r.dir, "links")), []string{"there", link}; !slices.Equal(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestLogsThatCannotBeRemovedAreSaidOnce(t *testing.T) {
	liveWith(t, func(r *rig) {
		r.configure = func(c *config.Config) { c.LogInterval = time.Hour }
	}, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		c, _ := r.Container("web-n/c")
		mine := "logs/default_web-n_" + c.UID + "/c/"
		tree(t, r.dir, mine+"7.log", mine+"6.log", mine+"5.log")
		release := pin(t, filepath.Join(r.dir, mine+"5.log"))
		r.after(5*gc.GarbageEvery + time.Second)
		r.says(1, "log removal failed")
		release()
		r.after(gc.GarbageEvery)
		if _, err := os.Stat(filepath.Join(r.dir, mine+"5.log")); !os.IsNotExist(err) {
			t.Errorf("the log stays: %v", err)
		}
	})
}

// A pod cannot be accepted while what is left of a former one is removed, and
// nothing is removed of one that was.
func TestClaim(t *testing.T) {
	r, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tree(t, r.Dir, "pods/u/volumes/x")
	c := &checkpoint.Checkpoint{Pod: somePod(func(p *v1.Pod) { p.UID = "u" })}
	release, free := r.Claim("u")
	if !free {
		t.Fatal("it is not free")
	}
	if err := r.Save(c); err == nil || !strings.Contains(err.Error(), "is being removed") {
		t.Errorf("saved: %v", err)
	}
	release()
	if err := r.Save(c); err != nil {
		t.Error(err)
	}
	if _, free := r.Claim("u"); free {
		t.Error("it is free though it was accepted")
	}
	if _, free := r.Claim("nowhere"); free {
		t.Error("what is not there is free")
	}
}

// Of each container as many dead ones stay as are asked for, and at least one;
// also once the pod has ended.
func TestKeepsSoManyDeadContainers(t *testing.T) {
	for _, row := range []struct{ keep, want int }{{0, 1}, {1, 1}, {3, 3}} {
		t.Run(fmt.Sprint(row.keep), func(t *testing.T) {
			liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.DeadContainers = row.keep } }, func(r *rig) {
				r.want(manifest("web", "img:1", "restartPolicy: OnFailure"))
				r.after(time.Second)
				for range 5 {
					r.Exit("c", 1)
					r.after(6 * time.Minute)
				}
				if n := len(r.Containers()); n != row.want+1 {
					t.Errorf("while it runs %d dead containers\n%s", n-1, r)
				}
				r.Exit("c", 0)
				r.after(time.Minute)
				if n := len(r.Containers()); n != row.want {
					t.Errorf("after it ended %d\n%s", n, r)
				}
				logs, _ := filepath.Glob(filepath.Join(r.dir, "logs", "*", "c", "*.log"))
				if len(logs) != row.want {
					t.Errorf("logs %s", logs)
				}
			})
		})
	}
}
