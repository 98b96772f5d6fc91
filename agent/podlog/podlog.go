// Package podlog reads the logs that a runtime keeps of a container: one folder of files in the
// CRI's log format, one file per attempt, and next to it the rotated, compressed files of the same
// attempt. Reading covers all of them as if they were one, and can follow them as they grow.
package podlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Which attempts of a container are read.
type Which int

const (
	Newest   Which = iota // the newest; following continues with later ones
	All                   // all existing ones, oldest first; following continues with later ones
	Previous              // the one before the newest
	Only                  // Options.Attempt
)

// Streams of a line.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Options is what to read. The zero value reads all of the newest attempt.
type Options struct {
	Which   Which
	Attempt int       // with Only
	Stream  string    // Stdout or Stderr; "" for both
	Since   time.Time // leaves out lines that are older
	Tail    *int64    // leaves out all but so many lines at the end; nil: none

	// Follow waits for more, and for the folder if it does not exist yet. When the container gets
	// a new log, by rotation or restart, no line is lost or doubled, unless the reader is so slow
	// that logs are removed.
	Follow bool
	// Ended is closed by the caller when nothing more will be written: Read reads what exists,
	// then returns. Nil: only ctx ends following.
	Ended <-chan struct{}
	// Watcher watches the folder while it is followed, with those of other Reads; nil: one of its own.
	Watcher *Watcher
	// Idle is called each time that everything available has been emitted, before waiting for more
	// and at the end: the moment to flush. May be nil.
	Idle func() error
}

// Line is a line that a container wrote, or a piece of a line that is longer than LineMax, or that
// the container has not ended yet.
type Line struct {
	Time      time.Time // of its first piece; zero if the file does not have it
	Stream    string
	Attempt   int
	Text      []byte // without newline; the reader's own, valid until emit returns
	Partial   bool   // the line continues in the next Line of the attempt and stream
	Continued bool   // the line began in an earlier Line
}

// LineMax bounds a Line's text, in bytes: longer lines are emitted in pieces.
const LineMax = 256 << 10

// errNone: there is nothing to read.
var errNone = fmt.Errorf("no log: %w", fs.ErrNotExist)

// Read reads the logs in a container's folder, such as /var/log/pods/<ns>_<pod>_<uid>/<container>,
// and calls emit for each line. Without Follow it reads what exists now, and if nothing exists the
// error is an fs.ErrNotExist. An error of emit or Idle ends it and is returned as it is; so is the
// cause of ctx. A compressed log that is damaged is read as far as possible and reported at the
// end.
func Read(ctx context.Context, dir string, o Options, emit func(Line) error) error {
	r := &reader{dir: dir, o: o, join: joiner{emit: emit, since: o.Since, stream: o.Stream}}
	defer r.close()
	if o.Follow {
		r.watch = startWatch(dir, o.Watcher)
		defer r.watch.close()
	}
	err := r.run(ctx)
	if errors.Is(err, errDone) {
		err = nil
	}
	if err != nil {
		return err
	}
	return r.damage
}
