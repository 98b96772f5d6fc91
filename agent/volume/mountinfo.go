package volume

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// mountPoint is one line of mountinfo.
type mountPoint struct {
	path string // absolute, without links
	kind string // of file system: tmpfs, ext4

	shared bool // an unmount below it propagates to other mounts
}

// mountTable is a view of the mounts below a directory for one operation: it is read once, on first
// use. A machine may have thousands of mounts, of which few belong to one pod.
type mountTable struct {
	within string // the directory
	read   func(real string) ([]mountPoint, error)

	real string // within, without links
	all  []mountPoint
	done bool
}

func newMountTable(within string) *mountTable { return &mountTable{within: within, read: readMounts} }

// below returns the mounts at dir or below, in the order of mounting; none if dir does not exist.
// Mounts that were made after the table was read are missing.
func (t *mountTable) below(dir string) (out []mountPoint, err error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := t.fill(); err != nil {
		return nil, err
	}
	if !isBelow(real, t.real) { // a link leads there
		return t.read(real)
	}
	for _, m := range t.all {
		if isBelow(m.path, real) {
			out = append(out, m)
		}
	}
	return out, nil
}

// fill reads the table once. It requires that the directory exists, which is true if one below it
// does.
func (t *mountTable) fill() (err error) {
	if t.done {
		return nil
	}
	if t.real, err = filepath.EvalSymlinks(t.within); err != nil {
		return err
	}
	t.all, err = t.read(t.real)
	t.done = err == nil
	return err
}

// isBelow reports whether a path is a directory or below it, both without links.
func isBelow(path, dir string) bool {
	rest, below := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return below && (rest == "" || rest[0] == '/')
}

// mountsBelow returns the present mounts at dir or below.
func mountsBelow(dir string) ([]mountPoint, error) { return newMountTable(dir).below(dir) }

// readMounts reads the mounts of this process that are at a directory or below it; its path must be
// without links. The others are not kept in memory.
func readMounts(real string) ([]mountPoint, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mountsIn(f, real)
}

// longestLine is longer than any line of mountinfo: two paths and the options, a page each.
const longestLine = 1 << 20

// rooms has the memory in which tables of mounts were read.
var rooms = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// mountsIn parses a table of mounts, as readMounts does.
func mountsIn(table io.Reader, real string) (out []mountPoint, err error) {
	lines := bufio.NewScanner(table)
	room := rooms.Get().(*[8 << 10]byte)
	defer rooms.Put(room)
	lines.Buffer(room[:0], longestLine)
	for lines.Scan() {
		path, isLine := pathIn(lines.Bytes())
		if !isLine {
			return nil, errLine(lines.Text())
		}
		if !mayBeBelow(path, real) {
			continue
		}
		m, err := parseMount(lines.Text())
		if err != nil {
			return nil, err
		}
		if isBelow(m.path, real) {
			out = append(out, m)
		}
	}
	return out, lines.Err()
}

// pathIn returns the mount point in a line, without unescaping it.
func pathIn(line []byte) (path []byte, ok bool) {
	for range 4 {
		if _, line, ok = bytes.Cut(line, []byte(" ")); !ok {
			return nil, false
		}
	}
	path, _, _ = bytes.Cut(line, []byte(" "))
	return path, true
}

// mayBeBelow reports whether the mount point of a line may be below a directory. It is false only
// if the mount point has no escapes and another beginning.
func mayBeBelow(path []byte, real string) bool {
	if bytes.IndexByte(path, '\\') >= 0 {
		return true
	}
	real = strings.TrimSuffix(real, "/")
	return len(path) >= len(real) && string(path[:len(real)]) == real
}

func errLine(line string) error { return fmt.Errorf("mountinfo line %q is not understood", line) }

// parseMount parses a line as described in proc_pid_mountinfo(5): the mount point is the fifth
// field, the file system type follows a single dash. The kernel escapes the
// spaces in paths, but not all that strings.Fields takes for one.
func parseMount(line string) (mountPoint, error) {
	front, back, ok := strings.Cut(line, " - ")
	f := strings.Split(front, " ")
	if !ok || len(f) < 6 {
		return mountPoint{}, errLine(line)
	}
	kind, _, _ := strings.Cut(back, " ")
	shared := slices.ContainsFunc(f[6:], func(s string) bool { return strings.HasPrefix(s, "shared:") })
	return mountPoint{path: Unescape(f[4]), kind: kind, shared: shared}, nil
}

// Unescape replaces \040 and the like, as in mountinfo, by the bytes that they represent.
func Unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
