package image

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"monopod/cri"
	"monopod/cri/critest"
)

// Pulls that end while the disk is busy are synced once more together.
func TestWhatWasPulledIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		r.SetImageDir("/var/lib/runtime")
		var synced []string
		p := New(cri.New(r.Conn()), Config{Parallel: 4, SyncFS: func(dir string) error {
			time.Sleep(time.Minute)
			synced = append(synced, dir)
			return nil
		}})
		began := time.Now()
		var all sync.WaitGroup
		for k := range 4 {
			r.OnPull(fmt.Sprint("img:", k), time.Duration(k)*time.Second, nil)
			all.Go(func() {
				if _, _, err := p.Pull(t.Context(), Request{Image: fmt.Sprint("img:", k)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took >= time.Minute {
			t.Errorf("the pods waited %s for the disk", took)
		}
		p.Wait()
		if len(synced) != 2 || synced[0] != "/var/lib/runtime" {
			t.Errorf("synced: %q", synced)
		}
	})
}

func TestAFailedSyncIsSaidOnceAndFailsNoPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		r.SetImageDir("/var/lib/runtime")
		var said bytes.Buffer
		p := New(cri.New(r.Conn()), Config{Log: slog.New(slog.NewTextHandler(&said, nil)),
			SyncFS: func(string) error { return errors.New("input/output error") }})
		for _, image := range []string{"img:1", "img:2"} {
			if _, _, err := p.Pull(t.Context(), Request{Image: image}); err != nil {
				t.Error(err)
			}
			p.Wait()
		}
		if n := strings.Count(said.String(), "input/output error"); n != 1 {
			t.Errorf("said %d times: %s", n, said.String())
		}
	})
}

func TestAFailedPullSyncsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		r.SetImageDir("/var/lib/runtime")
		r.OnPull("img:1", 0, errors.New("not found"))
		p := New(cri.New(r.Conn()), Config{SyncFS: func(string) error { t.Error("synced"); return nil }})
		if _, _, err := p.Pull(t.Context(), Request{Image: "img:1"}); err == nil {
			t.Error("pulled")
		}
		p.Wait()
	})
}

func TestTheDisksFileSystemCanBeSynced(t *testing.T) {
	if err := syncFS(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := syncFS("/nonexistent"); err == nil {
		t.Error("a folder that does not exist was synced")
	}
}
