package gc

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
	"monopod/agent/metrics"
)

func TestOrphanedLogsAreNotRemovedThroughMounts(t *testing.T) {
	g := &Garbage{PodLogs: t.TempDir()}
	other, dir := t.TempDir(), filepath.Join(g.PodLogs, "default_web_u1")
	kept, at := filepath.Join(other, "kept"), filepath.Join(dir, "mount")
	if err := errors.Join(os.WriteFile(kept, nil, 0o600), os.MkdirAll(at, 0o755), unix.Mount(other, at, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	if err := g.removeLogs(t.Context(), "u1"); !errors.Is(err, disk.ErrMounted) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Error(err)
	}
	if err := errors.Join(unix.Unmount(at, 0), g.removeLogs(t.Context(), "u1")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("they are still there: %v", err)
	}
}

func TestFewOfVeryManyLogsAreHeldInMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pod", "c")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for n := range 5000 {
		if err := unix.Mknod(fmt.Sprintf("%s/%d.log", dir, n), unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	if all := attemptsIn(dir); len(all) != maxAttempts || all[0] < all[1] {
		t.Errorf("%d attempts, the first %d", len(all), all[0])
	}
}

func TestUIDOfLogs(t *testing.T) {
	for dir, want := range map[string]string{"ns_p_u": "u", "ns_p": "", "a_b_c_d": "", "ns_p_..": "", "ns_p_": "", "x": ""} {
		if got := UidOfLogs(dir); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

// An agent that died may have left a dir that nobody claims.
func TestUsersOfOrphansGoBack(t *testing.T) {
	r, err := checkpoint.OpenRoot(t.TempDir())
	noErr(t, err)
	defer r.Close()
	r.Users.Pool = func() (checkpoint.IdRange, error) {
		return checkpoint.IdRange{First: checkpoint.IdsPerPod, Length: checkpoint.IdsPerPod}, nil
	}
	for _, uid := range []string{"a", "b"} {
		noErr(t, os.Mkdir(r.PodDir(uid), 0o750))
	}
	_, err = r.Users.Take("a")
	noErr(t, err)
	if u, err := r.Users.Take("b"); err == nil {
		t.Errorf("b got %v", u)
	}
	trash := &Garbage{Root: r, Metrics: metrics.New(metrics.Config{}), Log: slog.New(slog.DiscardHandler)}
	trash.CollectPods(t.Context(), map[string]bool{"b": true}, true)
	_, err = r.Users.Take("b")
	noErr(t, err)
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
