package podlog

import (
	"bytes"
	"encoding/json"
	"time"
)

// headMax is how much of a line in a file contains everything but its text: a time, a stream and
// tags.
const headMax = 128

// entry is a line of a file: a line that a container wrote or a part of one.
type entry struct {
	time   time.Time
	stream string
	full   bool // the last part of a line
	text   []byte
}

// parse parses a line of a file, without its newline: "time stream tags text", where the first of
// the tags, which colons separate, is F for a line and for the last part of one, and P for other
// parts. A line in another form is treated as text, so that none is lost: lines of Docker's JSON
// form, which cri-dockerd leaves there, are parsed as such.
func parse(line []byte) entry {
	line = bytes.TrimLeft(line, "\x00") // a crash of the machine leaves these in files
	if h, ok := parseHead(line); ok {
		return entry{time: h.time, stream: h.stream, full: h.full, text: line[h.size:]}
	}
	if len(line) > 0 && line[0] == '{' {
		if e, ok := parseDocker(line); ok {
			return e
		}
	}
	return entry{stream: Stdout, full: true, text: line}
}

// head is the beginning of a line of a file.
type head struct {
	time   time.Time
	stream string
	full   bool
	size   int
}

// parseHead parses the beginning of a line, of which the first headMax bytes are enough.
func parseHead(line []byte) (h head, ok bool) {
	at, rest, ok := bytes.Cut(line[:min(len(line), headMax)], []byte(" "))
	if !ok || len(at) < len("2006-01-02T15:04:05Z") || at[4] != '-' || at[10] != 'T' {
		return h, false
	}
	switch {
	case bytes.HasPrefix(rest, []byte(Stdout+" ")):
		h.stream = Stdout
	case bytes.HasPrefix(rest, []byte(Stderr+" ")):
		h.stream = Stderr
	default:
		return h, false
	}
	rest = rest[len(h.stream)+1:]
	tags := bytes.IndexByte(rest, ' ')
	size := len(at) + 1 + len(h.stream) + 1 + tags + 1
	if tags < 0 { // an empty line of a runtime that omits the last space
		tags, size = len(rest), len(line)
		if len(line) > headMax {
			return h, false
		}
	}
	first, _, _ := bytes.Cut(rest[:tags], []byte(":"))
	switch string(first) {
	case "F":
		h.full = true
	case "P":
	default:
		return h, false
	}
	h.size = size
	var err error
	h.time, err = time.Parse(time.RFC3339Nano, string(at))
	return h, err == nil
}

func parseDocker(line []byte) (entry, bool) {
	var d struct {
		Log    *string   `json:"log"`
		Stream string    `json:"stream"`
		Time   time.Time `json:"time"`
	}
	if json.Unmarshal(line, &d) != nil || d.Log == nil || d.Stream != Stdout && d.Stream != Stderr || d.Time.IsZero() {
		return entry{}, false
	}
	text, full := bytes.CutSuffix([]byte(*d.Log), []byte("\n"))
	return entry{time: d.Time, stream: d.Stream, full: full, text: text}, true
}
