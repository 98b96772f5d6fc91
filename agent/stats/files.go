package stats

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	cgroup2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	"golang.org/x/sys/unix"
)

// ReadFile returns the content of a kernel file. One sample of a busy node reads thousands, and
// kernel files have no size for os.ReadFile to allocate and nothing to poll for.
func ReadFile(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var page [4096]byte
	var text string
	for {
		n, err := unix.Read(fd, page[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return "", err
		case n == 0:
			return text, nil
		default:
			text += string(page[:n])
		}
	}
}

// number reads a file with one number; nil if it has none, as in "max".
func number(path string) *uint64 {
	text, err := ReadFile(path)
	if err != nil {
		return nil
	}
	return parse(strings.TrimSpace(text))
}

func parse(text string) *uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// valueOf returns the number behind a key at the beginning of a line of a file's text; nil if there
// is none.
func valueOf(text, key string) *uint64 {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, key+" "); found {
			return parse(strings.TrimSpace(value))
		}
	}
	return nil
}

// lines returns the fields of each line of a file.
func lines(path string) [][]string {
	text, err := ReadFile(path)
	if err != nil {
		return nil
	}
	var out [][]string
	for line := range strings.Lines(text) {
		out = append(out, strings.Fields(line))
	}
	return out
}

// readPressure reads a file such as /proc/pressure/cpu; nil if it is missing.
func readPressure(path string) *cgroup2.PSIStats {
	text, _ := ReadFile(path)
	p := &cgroup2.PSIStats{}
	for line := range strings.Lines(text) {
		var kind string
		d := &cgroup2.PSIData{}
		_, err := fmt.Sscanf(line, "%s avg10=%f avg60=%f avg300=%f total=%d", &kind, &d.Avg10, &d.Avg60, &d.Avg300, &d.Total)
		switch {
		case err == nil && kind == "some":
			p.Some = d
		case err == nil && kind == "full":
			p.Full = d
		}
	}
	if p.Some == nil {
		return nil
	}
	return p
}
