package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mountPoint is one line of mountinfo.
type mountPoint struct {
	path string // absolute, free of links
	kind string // of file system: tmpfs, ext4

	shared bool // unmounting below it unmounts elsewhere too
}

// mountTable is the table of mounts as one pass of work sees it: it is read when it
// is needed first, and once. A machine may have thousands of mounts.
type mountTable struct {
	read func() (string, error)
	all  string
	done bool
}

func newMountTable() *mountTable { return &mountTable{read: readMounts} }

// below returns the mounts at dir or below, in the order of mounting. A dir that
// does not exist has none below. Mounts made since the table was read are missing.
func (t *mountTable) below(dir string) (out []mountPoint, err error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !t.done {
		t.all, err = t.read()
		t.done = err == nil
	}
	if err != nil {
		return nil, err
	}
	real = strings.TrimSuffix(real, "/")
	for line := range strings.Lines(t.all) {
		path, err := pathOf(line)
		if err != nil {
			return nil, err
		}
		if rest, below := strings.CutPrefix(path, real); !below || rest != "" && rest[0] != '/' {
			continue
		}
		m, err := parseMount(line)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// mountsBelow returns the mounts that are at dir or below now.
func mountsBelow(dir string) ([]mountPoint, error) { return newMountTable().below(dir) }

// readMounts reads the mounts of this process, of which the kernel gives a page at a time.
func readMounts() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	var b strings.Builder
	_, err = io.Copy(&b, f)
	return b.String(), err
}

// pathOf returns the mount point of a line, the rest of which is not looked at.
func pathOf(line string) (string, error) {
	rest, ok := line, true
	for range 4 {
		if _, rest, ok = strings.Cut(rest, " "); !ok {
			return "", errLine(line)
		}
	}
	path, _, _ := strings.Cut(rest, " ")
	return unescape(path), nil
}

func errLine(line string) error { return fmt.Errorf("mountinfo line %q is not understood", line) }

// parseMount reads a line as proc_pid_mountinfo(5) describes it: the mount
// point is the fifth field, the kind follows a lone dash.
func parseMount(line string) (mountPoint, error) {
	front, back, ok := strings.Cut(line, " - ")
	f := strings.Fields(front)
	if !ok || len(f) < 6 {
		return mountPoint{}, errLine(line)
	}
	kind, _, _ := strings.Cut(back, " ")
	shared := slices.ContainsFunc(f[6:], func(s string) bool { return strings.HasPrefix(s, "shared:") })
	return mountPoint{path: unescape(f[4]), kind: kind, shared: shared}, nil
}

// unescape turns \040 and the like into the bytes they stand for.
func unescape(s string) string {
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
