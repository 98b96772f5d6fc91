package image

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"monopod/agent/saidonce"
	"monopod/cri"
)

// syncer writes what was pulled to the disk soon. A runtime records at once that it has an image,
// but the kernel writes the image's files half a minute later: a power cut in between leaves an
// image of empty files that counts as present for ever.
type syncer struct {
	cri  *cri.Client
	sync func(dir string) error // the whole file system of a folder
	log  *slog.Logger

	mu     sync.Mutex
	busy   bool
	again  bool           // something was pulled since the last sync started
	logged saidonce.Error // of the goroutine that syncs
}

// start starts a sync in the background, which ends by itself. No pod waits for it.
func (s *syncer) start(running *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = true
	if s.busy {
		return
	}
	s.busy = true
	running.Go(func() {
		for s.more() {
			if err := s.once(); s.logged.IsNew(err) {
				s.log.Warn("pulled image not synced to the disk; a power cut may damage it", "err", err)
			}
		}
	})
}

// more reports whether there is something to sync, and records that it is done.
func (s *syncer) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.again = s.again, false
	return s.busy
}

// once syncs the file system that the runtime has its images on, if it reports one.
func (s *syncer) once() error {
	fs, err := s.cri.ImageFS(context.Background()) // which has a deadline of its own
	if dir := fs.GetFsId().GetMountpoint(); err == nil && dir != "" {
		return s.sync(dir)
	}
	return err
}

// syncFS waits until all of a file system is on its disk.
func syncFS(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("sync the file system of %s: %w", dir, err)
	}
	return nil
}
