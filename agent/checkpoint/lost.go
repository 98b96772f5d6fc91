package checkpoint

import (
	"errors"
	"io/fs"
	"log/slog"

	"monopod/agent/disk"
)

// loss is the content that was lost with an unreadable file.
type loss struct {
	text string
	err  error
}

// lost logs and records what was lost with a file, unless the file did not exist.
func (r *Root) lost(log *slog.Logger, text string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	log.Error(text, "err", err)
	if r.event != nil {
		r.event("StateFileDamaged", text+": "+err.Error())
	}
}

// readTwins reads a file that has a twin, and repairs the damaged one of the two. The error reports
// that neither can be read.
func (r *Root) readTwins(path string, perm fs.FileMode, text string, parse func([]byte) error) error {
	again, err := disk.ReadTwin(path, parse)
	if again == nil {
		return err
	}
	if err != nil {
		r.said = append(r.said, loss{text, err})
		r.saySoFar()
	}
	_ = writeTwins(path, again, perm) // a disk that takes no data is reported elsewhere; the next start tries again
	return nil
}

// saySoFar reports the losses, once Complain was called.
func (r *Root) saySoFar() {
	if r.log == nil {
		return
	}
	for _, l := range r.said {
		r.lost(r.log, l.text, l.err)
	}
	r.said = nil
}

// writeTwins writes a file and its twin, synced.
func writeTwins(path string, content []byte, perm fs.FileMode) error {
	twin, err := disk.Twin(content)
	if err != nil {
		return err
	}
	if err := disk.WriteFile(disk.TwinOf(path), twin, perm); err != nil {
		return err
	}
	return disk.WriteFile(path, content, perm)
}
