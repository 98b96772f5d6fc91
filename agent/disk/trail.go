package disk

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// maxOpen is how many folders of a Trail are open besides its top.
	maxOpen = 32
	// MaxDepth is how deep folders may be nested; each takes 16 bytes of memory.
	MaxDepth = 1 << 20
	// pathLimit bounds the paths in messages, as each folder's path repeats those above it.
	pathLimit = 512
)

var (
	// ErrMounted means that something is mounted where a folder's own entry should be.
	ErrMounted = errors.New("something is mounted there")
	// ErrMoved means that a folder is no longer in the one through which it was opened.
	ErrMoved = errors.New("it was moved while it was read")
	// ErrTooDeep means that folders are nested more than MaxDepth deep.
	ErrTooDeep = fmt.Errorf("folders are more than %d deep in each other", MaxDepth)
)

// Trail is the way from an open folder to one below it, without links or mounts. Only its deepest
// folders are open: the way back is "..", which must lead to the folder that it came from. One
// goroutine uses it.
type Trail struct {
	top    *Dir
	device uint64
	levels []level  // the folders below the top
	open   []*Dir   // the deepest of them
	paths  []string // paths of the first levels, for messages
	far    string   // the path in messages of the levels behind those
}

// level is what is kept of each folder, open or not.
type level struct {
	inode uint64
	at    int64 // the position at which its listing continues
}

// NewTrail returns a trail at its top, which the caller keeps open and closes.
func NewTrail(top *Dir) (*Trail, error) {
	s, err := top.Self()
	return &Trail{top: top, device: s.Dev}, err
}

// Now returns the present folder. The trail closes it.
func (t *Trail) Now() *Dir {
	if len(t.open) == 0 {
		return t.top
	}
	return t.open[len(t.open)-1]
}

// Depth returns the depth of the present folder below the top.
func (t *Trail) Depth() int { return len(t.levels) }

// Down enters a folder in the present one.
func (t *Trail) Down(name string) error {
	in := t.Now()
	if len(t.levels) == MaxDepth {
		return pathError("open", in.Path(name), ErrTooDeep)
	}
	fd, s, err := in.enter(name)
	if err != nil {
		return pathError("open", in.Path(name), err)
	}
	if len(t.paths) == len(t.levels) && len(in.path)+len(name)-len(t.top.path) < pathLimit {
		t.paths = append(t.paths, in.Path(name))
	}
	if len(t.open) == maxOpen {
		t.shut()
	}
	t.levels = append(t.levels, level{inode: s.Ino})
	t.open = append(t.open, t.dir(fd, len(t.levels)))
	return nil
}

// dir returns the open folder at a depth.
func (t *Trail) dir(fd, depth int) *Dir {
	return &Dir{fd: fd, path: t.pathOf(depth)}
}

// pathOf returns the path of the folder at a depth; for deep ones only the beginning.
func (t *Trail) pathOf(depth int) string {
	switch {
	case depth == 0:
		return t.top.path
	case depth <= len(t.paths):
		return t.paths[depth-1]
	case t.far == "":
		t.far = t.pathOf(len(t.paths)) + "/..."
	}
	return t.far
}

// shut closes the open folder with the least depth, and keeps the position of its listing.
func (t *Trail) shut() {
	d := t.open[0]
	t.levels[len(t.levels)-len(t.open)].at = d.listing.now
	d.Close()
	t.open = append(t.open[:0], t.open[1:]...)
}

// above returns the parent of the present folder; it opens the parent again if that is closed
// (again). Then the entry of the present folder is the next one in its listing, unless it is no
// longer there.
func (t *Trail) above() (in *Dir, again bool, err error) {
	depth := len(t.levels) - 1
	switch {
	case depth == 0:
		return t.top, false, nil
	case len(t.open) > 1:
		return t.open[len(t.open)-2], false, nil
	}
	fd, err := openat(t.Now().fd, "..", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, false, pathError("open", t.pathOf(depth), err)
	}
	in = t.dir(fd, depth)
	s, err := in.Self()
	if err == nil && (s.Dev != t.device || s.Ino != t.levels[depth-1].inode) {
		err = pathError("read", t.pathOf(depth+1), ErrMoved)
	}
	if err == nil {
		err = in.listing.seek(fd, t.levels[depth-1].at)
	}
	if err != nil {
		in.Close()
		return nil, false, err
	}
	in.listing.came = 1 // the folder for which it was left
	t.open = []*Dir{in, t.Now()}
	return in, true, nil
}

// Up returns to the parent of the present folder.
func (t *Trail) Up() error {
	_, _, err := t.above()
	if err == nil {
		t.leave()
	}
	return err
}

// leave closes the present folder. Its parent must be open.
func (t *Trail) leave() {
	t.Now().Close()
	t.open, t.levels = t.open[:len(t.open)-1], t.levels[:len(t.levels)-1]
	if len(t.levels) < len(t.paths) {
		t.paths, t.far = t.paths[:len(t.levels)], ""
	}
}

// Close closes the folders below the top.
func (t *Trail) Close() {
	for _, d := range t.open {
		d.Close()
	}
	t.open, t.levels = nil, nil
}

// enter opens a folder in this one that is neither a link nor a mount.
func (d *Dir) enter(name string) (fd int, s Stat, err error) {
	if fd, err = d.openHere(name, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		return -1, s, err
	}
	if err := unix.Fstat(fd, &s.Stat_t); err != nil {
		unix.Close(fd)
		return -1, s, err
	}
	return fd, s, nil
}

// openHere opens an entry that belongs to this folder itself: the error is ErrMounted for a mount
// point, and ErrLink for a link if a folder is requested.
func (d *Dir) openHere(name string, flags int) (int, error) {
	if err := checkName(name); err != nil {
		return -1, err
	}
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat2(d.fd, name, &unix.OpenHow{
		Flags:   uint64(flags),
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_BENEATH,
	})
	if err == unix.ENOSYS || err == unix.EPERM { // Linux before 5.6, or a filter that does not know the call
		fd, err = d.openHereOld(name, flags)
	}
	switch {
	case err == unix.EXDEV:
		err = ErrMounted
	case err == unix.ELOOP, err == unix.ENOTDIR:
		if s, failed := d.Stat(name); failed == nil && s.IsLink() {
			err = ErrLink
		}
	}
	return fd, err
}

// openHereOld detects mounts by their ids: a bind mount of the same file system has the same device
// as what it hides.
func (d *Dir) openHereOld(name string, flags int) (int, error) {
	fd, err := openat(d.fd, name, flags)
	if err != nil {
		return -1, err
	}
	here, err := mountOf(d.fd)
	there, failed := mountOf(fd)
	if err = errors.Join(err, failed); err == nil && here != there {
		err = unix.EXDEV
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// mountOf returns the id of the mount that an open file is on (proc(5), fdinfo; Linux 3.15).
func mountOf(fd int) (id int, err error) {
	info, err := unix.Open("/proc/self/fdinfo/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(info)
	var buffer [512]byte // its first lines are pos, flags and mnt_id
	n, err := unix.Read(info, buffer[:])
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(buffer[:n], []byte("mnt_id:"))
	for _, c := range bytes.TrimLeft(rest, "\t ") {
		if c < '0' || c > '9' {
			return id, nil
		}
		id = 10*id + int(c-'0')
	}
	return 0, fmt.Errorf("/proc/self/fdinfo/%d has no mnt_id", fd)
}
