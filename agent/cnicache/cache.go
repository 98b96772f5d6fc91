// Package cnicache removes what a power cut leaves of the notes that the CNI library keeps.
//
// The library notes what a sandbox's network is (its package libcni, file api.go) and does
// not sync that. With half a note it takes no network down, for ever, so the runtime cannot
// stop or remove the sandbox. Without a note it can: the plugins get the sandbox's id.
package cnicache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"

	"monopod/agent/disk"
)

// Dir is where the runtimes' CNI library keeps its notes, one file for each sandbox and
// network: NETWORK-SANDBOX-INTERFACE.
const Dir = "/var/lib/cni/results"

// most is more than a note ever has, in bytes.
const most = 1 << 20

// Cache is the folder of the notes. The zero value has none.
type Cache struct {
	Dir string
	Log *slog.Logger
}

// TakeDown takes a sandbox down with do. If that fails and a note on the sandbox is damaged,
// it removes the note and does it once more.
func (c Cache) TakeDown(ctx context.Context, sandbox string, do func(ctx context.Context, sandbox string) error) error {
	err := do(ctx, sandbox)
	if err == nil || ctx.Err() != nil {
		return err
	}
	mended, merr := c.mend(sandbox)
	switch {
	case mended:
		return do(ctx, sandbox)
	case merr != nil:
		return fmt.Errorf("%w; CNI's note on it: %w", err, merr)
	}
	return err
}

// ids are what runtimes call sandboxes; one of a pattern's own characters would match others.
var ids = regexp.MustCompile(`^[0-9a-zA-Z]{8,}$`)

// mend removes the damaged notes on a sandbox and reports whether there was one.
func (c Cache) mend(sandbox string) (mended bool, err error) {
	if c.Dir == "" || !ids.MatchString(sandbox) {
		return false, nil
	}
	files, err := filepath.Glob(filepath.Join(c.Dir, "*-"+sandbox+"-*"))
	for _, file := range files {
		if sound, rerr := isSound(file); sound || rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		if rerr := os.Remove(file); rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		mended = true
		c.Log.Warn("CNI's note on a sandbox was damaged, as a power cut may leave it; removed", "file", file)
	}
	return mended, err
}

// isSound reports whether a note is whole, or gone.
func isSound(file string) (bool, error) {
	f, err := disk.Open(file, 1)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	note, err := disk.ReadAll(f, most)
	return json.Valid(note), err
}
