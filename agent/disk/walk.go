package disk

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Step is the kind of a visit in a walk.
type Step int

const (
	Leaf    Step = iota // an entry that is not a folder: a file, a link, a pipe
	Enter               // a folder, before its content
	Leave               // that folder, after its content
	Mounted             // a folder on which something is mounted: its content is not visited
)

// Found is one step of a walk. Its folders are open until visit returns.
type Found struct {
	Step   Step
	In     *Dir   // the parent folder
	Name   string // of the entry; at Leave "" if it is no longer there
	Folder *Dir   // the folder itself, at Enter and Leave
	Depth  int    // of the entry: 1 in the top
}

// ErrAgain, returned for Leave, has the folder read once more from its beginning, if it had any
// entry this time. Otherwise the walk returns it.
var ErrAgain = errors.New("something is in it that does not show")

// ErrSkip, returned for Enter, skips the content of the folder, and its Leave.
var ErrSkip = errors.New("the folder is passed over")

// Walk calls visit for everything below an open folder, and stops at the first error. It is for
// folders to which containers write, also at the same time: it goes from open folder to open
// folder, through neither links nor mounts. Its memory is bounded except for a few numbers per
// level of depth, and its time is proportional to the number of entries. Entries that are removed
// meanwhile are skipped, a folder that is moved while the walk is deep below it is ErrMoved, and
// visit may remove what it visits.
func Walk(ctx context.Context, top *Dir, visit func(Found) error) error {
	t, err := NewTrail(top)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := top.listing.rewind(top.fd); err != nil {
		return pathError("read", top.path, err)
	}
	w := &walk{trail: t, visit: visit}
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if over, err := w.step(); over || err != nil {
			return err
		}
	}
}

type walk struct {
	trail *Trail
	visit func(Found) error
}

// step visits the next entry; over: there is none.
func (w *walk) step() (over bool, err error) {
	in := w.trail.Now()
	e, more, err := in.listing.next(in.fd)
	switch {
	case err != nil:
		return false, pathError("read", in.path, err)
	case more:
		return false, w.entry(in, e)
	case w.trail.Depth() == 0:
		return true, nil
	}
	return false, w.leave()
}

func (w *walk) entry(in *Dir, e entry) error {
	f := Found{In: in, Name: e.name, Depth: w.trail.Depth() + 1}
	if !e.mayBeDir() {
		return w.visit(f)
	}
	err := w.trail.Down(e.name)
	switch {
	case err == nil:
		f.Step, f.Folder = Enter, w.trail.Now()
	case errors.Is(err, ErrMounted):
		f.Step = Mounted
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, ErrLink): // otherwise it is not a folder, or no longer one
		return err
	}
	err = w.visit(f)
	if f.Step == Enter && errors.Is(err, ErrSkip) {
		w.trail.leave() // the folder above is open: this one was entered just now
		return nil
	}
	return err
}

// leave returns to the folder above, unless visit requests this one again.
func (w *walk) leave() error {
	d, depth := w.trail.Now(), w.trail.Depth()
	in, reopened, err := w.trail.above()
	if err != nil {
		return err
	}
	name := in.listing.last.name
	if reopened {
		name, err = in.nameOf(w.trail.levels[depth-1].inode)
	}
	if err == nil {
		err = w.visit(Found{Step: Leave, In: in, Name: name, Folder: d, Depth: depth})
	}
	switch {
	case err == nil:
		w.trail.leave()
		return nil
	case !errors.Is(err, ErrAgain):
		return err
	}
	err = ErrAgain
	if d.listing.came > 0 {
		err = d.listing.rewind(d.fd)
	}
	if err != nil {
		return pathError("read", d.path, err)
	}
	return nil
}

// nameOf returns the name of the next entry if that has the inode. Otherwise the listing returns
// that entry again.
func (d *Dir) nameOf(inode uint64) (string, error) {
	e, more, err := d.listing.next(d.fd)
	if err != nil {
		return "", pathError("read", d.path, err)
	}
	if !more {
		return "", nil
	}
	if s, err := d.Stat(e.name); err == nil && s.Ino == inode {
		return e.name, nil
	}
	d.listing.again = true
	return "", nil
}
