package devices

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"monopod/agent/podspec"
	"monopod/manifests/devicename"
)

// runs runs a keeper until the test ends.
func runs(t *testing.T, k *Keeper) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() {
		k.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// await waits until devices have come or gone.
func (m *machine) await(k *Keeper) {
	m.Helper()
	select {
	case <-k.Came():
	case <-time.After(time.Minute):
		m.Fatal("nothing has come")
	}
}

func TestADeviceIsSeenAtOnce(t *testing.T) {
	m := newMachine(t)
	s := m.settings()
	s.Unwatched = false
	k := m.keeper(s)
	began := time.Now()
	runs(t, k)
	m.connect("tty0=null")
	m.await(k)
	if r := k.Room(pod("a c=1")); r != nil {
		t.Error(r)
	}
	m.disconnect("tty0")
	m.await(k)
	if r := k.Room(pod("a c=1")); r == nil {
		t.Error("it is still there")
	}
	if since := time.Since(began); since > every {
		t.Errorf("it took %s", since)
	}
}

// What was missing when a container was to be made is looked for, also without any settings.
func TestADeviceThatWasMissingIsSeenAtOnce(t *testing.T) {
	m := newMachine(t)
	k := m.keeper(Settings{SpecDirs: []string{m.dir}})
	runs(t, k)
	p := pod("a c=podman.io/device=" + m.dir + "/fuse")
	if err := k.LookAt(p, podspec.AllContainers(p)); err == nil {
		t.Fatal("it is there")
	}
	m.connect("fuse=null")
	m.await(k)
	if len(k.missing) > 0 {
		t.Errorf("%v are missing", k.missing)
	}
}

func TestDevicesAreLookedAtNowAndThen(t *testing.T) {
	m := newMachine(t)
	synctest.Test(t, func(t *testing.T) {
		m := &machine{T: t, dir: m.dir}
		k := m.keeper(m.settings())
		told := 0
		k.Changed = func() { told++ }
		runs(t, k)
		synctest.Wait()
		m.connect("tty0=null")
		time.Sleep(every + time.Second)
		synctest.Wait()
		if len(k.Came()) != 1 || told != 1 {
			t.Errorf("told %d times", told)
		}
		take(k, pod("a c=1"))
		synctest.Wait()
		if told != 2 {
			t.Errorf("told %d times", told)
		}
	})
}

// Without anything to look at nothing is looked at.
func TestNothingIsLookedAtInVain(t *testing.T) {
	m := newMachine(t)
	k := m.keeper(Settings{SpecDirs: []string{m.dir}})
	if k.looks() {
		t.Error("it looks")
	}
	k.await(devicename.Device{Path: m.dir + "/x"})
	if !k.looks() {
		t.Error("it does not look")
	}
	synctest.Test(t, func(t *testing.T) {
		k.await(devicename.Device{Path: m.dir + "/x"})
		time.Sleep(wantedFor + time.Second)
		k.take(k.table.machine)
		if k.looks() {
			t.Error("it still looks for what no container requests")
		}
	})
}

func TestFoldersThatAreWatched(t *testing.T) {
	m := newMachine(t, "usb0=null", "usb1=null")
	top := m.dir
	for pattern, want := range map[string][]string{
		"tty*":            {top, top},
		"serial/by-id/x*": {top},
		"usb*/x":          {top + "/usb0", top + "/usb1", top},
	} {
		if got := dirsOf(filepath.Join(top, pattern)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", pattern, got)
		}
	}
}
