package podlog

import (
	"bytes"
	"slices"

	"monopod/agent/disk"
)

// lastRead is enough for Last, in bytes of a file.
const lastRead = 64 << 10

// Last returns the text at the end of one log file: of at most so many lines, and
// at most limit bytes; "" if the file cannot be read.
func Last(path string, lines, limit int) string {
	b, err := disk.Tail(path, LogDepth, lastRead) // may start within a line, which is too old to matter
	if err != nil {
		return ""
	}
	all := slices.Collect(bytes.Lines(b))
	var text []byte
	for _, l := range all[max(0, len(all)-lines):] {
		line, ended := bytes.CutSuffix(l, []byte("\n"))
		e := parse(line)
		text = append(text, e.text...)
		if e.full && ended {
			text = append(text, '\n')
		}
	}
	return string(text[max(0, len(text)-limit):])
}
