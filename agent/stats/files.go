package stats

import (
	"errors"
	"strconv"
	"strings"

	cgroup2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	"golang.org/x/sys/unix"
)

// readFile returns the text of a file of the kernel's. One look at a busy node
// reads thousands, and the kernel's files tell no size that os.ReadFile could ask
// for.
func readFile(path string) (string, error) {
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

// number reads a file that holds one number; nil if there is none, as in "max".
func number(path string) *uint64 {
	text, err := readFile(path)
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

// pair is a key of a file and where its number goes.
type pair struct {
	key string
	to  **uint64
}

// readPairs takes numbers from a file of lines "key number". What the file does
// not have stays as it is.
func readPairs(path string, pairs ...pair) {
	text, err := readFile(path)
	if err != nil {
		return
	}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, " ")
		for k := range pairs {
			if pairs[k].key == key {
				if n := parse(strings.TrimSpace(value)); n != nil {
					*pairs[k].to = n
				}
				break
			}
		}
	}
}

// lines returns the fields of each line of a file.
func lines(path string) [][]string {
	text, err := readFile(path)
	if err != nil {
		return nil
	}
	var out [][]string
	for line := range strings.Lines(text) {
		out = append(out, strings.Fields(line))
	}
	return out
}

// readPressure reads a file such as cpu.pressure; nil without one.
func readPressure(path string) *cgroup2.PSIStats {
	var p *cgroup2.PSIStats
	for _, f := range lines(path) {
		if len(f) < 5 {
			continue
		}
		if p == nil {
			p = &cgroup2.PSIStats{Some: &cgroup2.PSIData{}, Full: &cgroup2.PSIData{}}
		}
		to := p.Some
		if f[0] == "full" {
			to = p.Full
		}
		for _, pair := range f[1:] {
			key, value, _ := strings.Cut(pair, "=")
			switch key {
			case "avg10":
				to.Avg10, _ = strconv.ParseFloat(value, 64)
			case "avg60":
				to.Avg60, _ = strconv.ParseFloat(value, 64)
			case "avg300":
				to.Avg300, _ = strconv.ParseFloat(value, 64)
			case "total":
				to.Total, _ = strconv.ParseUint(value, 10, 64)
			}
		}
	}
	return p
}
