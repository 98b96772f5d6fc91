package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/node"
)

// smallDisk returns a file system of its own in memory. Only root can make one.
func smallDisk(t *testing.T) string {
	disk := t.TempDir()
	if err := unix.Mount("monopod-test", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("no disk can be mounted: ", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	return disk
}

func readOnly(t *testing.T, disk string) {
	noErr(t, unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
}

func TestAFreshRootDirThatTakesNothingIsOneError(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, disk string){
		"full":      func(t *testing.T, disk string) { fill(t, disk) },
		"read-only": readOnly,
	} {
		t.Run(name, func(t *testing.T) {
			disk := smallDisk(t)
			dir := filepath.Join(disk, "root")
			noErr(t, os.MkdirAll(filepath.Join(dir, "pods"), 0o750))
			spoil(t, disk)
			r, err := checkpoint.OpenRoot(dir)
			if err == nil {
				r.Close()
				t.Fatal("a root dir without an instance mark was taken")
			}
			if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, dir) || !strings.Contains(text, "--root") {
				t.Errorf("%q does not say what to do", text)
			}
		})
	}
}

func TestTheLockHoldsOnAReadOnlyRootDir(t *testing.T) {
	disk := smallDisk(t)
	dir := filepath.Join(disk, "root")
	r, err := checkpoint.OpenRoot(dir)
	noErr(t, err)
	r.Close()
	readOnly(t, disk)
	r, err = checkpoint.OpenRoot(dir)
	noErr(t, err)
	defer r.Close()
	if r.Trouble == nil {
		t.Error("nothing is said of a root dir that cannot be written")
	}
	if second, err := checkpoint.OpenRoot(dir); err == nil {
		second.Close()
		t.Error("two agents have one root dir")
	}
}

func TestTheLockNamesTheProcessThatHoldsIt(t *testing.T) {
	dir := t.TempDir()
	noErr(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("123456789123\n"), 0o600)) // a longer one from before
	r, err := checkpoint.OpenRoot(dir)
	noErr(t, err)
	defer r.Close()
	if r.Trouble != nil {
		t.Errorf("trouble with a root dir that is in order: %v", r.Trouble)
	}
	want := fmt.Sprintf("root dir %s is in use by another monopod (process %d): ", dir, os.Getpid())
	if _, err := checkpoint.OpenRoot(dir); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAnAgentIsMadeOnAReadOnlyRootDirAndSaysSo(t *testing.T) {
	disk := smallDisk(t)
	log := &lines{}
	cfg := config.Default()
	cfg.Manifests, cfg.NodeName, cfg.Endpoint, cfg.CgroupDriver, cfg.Root = []string{t.TempDir()}, "n", "unix:///nowhere/runtime", node.DriverNone, filepath.Join(disk, "root")
	cfg.Socket, cfg.Listen = filepath.Join(t.TempDir(), "socket"), ""
	made := func() (a *Agent, release func()) {
		a, err := New(cfg, nil, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		noErr(t, err)
		return a, func() {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			noErr(t, a.server.Run(ended))
			a.Close()
		}
	}
	_, release := made()
	release()
	readOnly(t, disk)
	a, release := made()
	defer release()
	said := 0
	a.events.List("").Each(func(e *v1.Event) bool {
		if e.Reason == "RootDirNotWritable" && e.InvolvedObject.Kind == "Node" {
			said++
		}
		return true
	})
	if logged := strings.Count(log.String(), "root dir cannot be written"); said != 1 || logged != 1 {
		t.Errorf("%d events and %d lines in the log: %s", said, logged, log)
	}
}

// An agent would remove what a kubelet's pods have on disk.
func TestAnAgentRefusesTheRootDirOfAKubeletBeforeItsPodsAreAdopted(t *testing.T) {
	cfg := config.Default()
	cfg.Root, cfg.Manifests, cfg.NodeName = t.TempDir(), []string{t.TempDir()}, "node1"
	noErr(t, os.MkdirAll(filepath.Join(cfg.Root, "pods", "u", "volumes"), 0o750))
	a, err := New(cfg, nil, Options{})
	if err == nil || !strings.Contains(err.Error(), "monopod adopt") {
		t.Errorf("%v", err)
	}
	if err == nil {
		a.Abandon()
	}
	if entries, _ := os.ReadDir(cfg.Root); len(entries) != 1 {
		t.Errorf("it left %v", entries)
	}
}
