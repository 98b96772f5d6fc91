package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
)

// journal is the file: a v1 Event as JSON on each line. A line replaces an earlier one with the
// same name. New events are appended; when too much of the file is outdated, it is rewritten,
// atomically.
type journal struct {
	path  string
	whole bool  // the file is known to be complete, with size bytes
	size  int64 // as this process left it
	least int64 // size when it was last rewritten
}

// sizeMin is a size that the file may always have, in bytes.
const sizeMin = 512 << 10

// load reads what the previous agent left. torn is the number of lines that are no events: a power
// cut may have left one.
func (j *journal) load() (events []v1.Event, torn int, err error) {
	err = disk.ReadOrAside(j.path, func(data []byte) error {
		events, torn = decode(data)
		j.size, j.whole = int64(len(data)), torn == 0 && (len(data) == 0 || data[len(data)-1] == '\n')
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		j.whole, err = true, nil
	}
	return events, torn, err
}

// Read returns the events of a file that an agent wrote, or writes, the latest last. Unreadable
// lines are left out.
func Read(path string) ([]v1.Event, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	events, _ := decode(data)
	for k := range events {
		delete(events[k].Annotations, annPublic) // only for the file
	}
	return events, nil
}

// decode returns the events of a file, each as it was last, the latest last: so they are written.
func decode(data []byte) (events []v1.Event, torn int) {
	at := map[string]int{} // the latest place, by name
	for line := range bytes.Lines(data) {
		var e v1.Event
		if json.Unmarshal(line, &e) != nil || e.Name == "" || e.InvolvedObject.Name == "" {
			torn++
			continue
		}
		name := e.Namespace + "/" + e.Name
		if k, twice := at[name]; twice {
			events[k].Name = ""
		}
		at[name] = len(events)
		events = append(events, e)
	}
	return slices.DeleteFunc(events, func(e v1.Event) bool { return e.Name == "" }), torn
}

func encode(records []record, node string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for k := range records {
		event := records[k].event(node)
		records[k].mark(event)
		if err := e.Encode(event); err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
	}
	return b.Bytes(), nil
}

// fits reports whether lines may be appended: there is room, and the file is as this process left
// it.
func (j *journal) fits(lines []byte) bool {
	now, err := os.Stat(j.path) // a new file is written whole, and its folder with it
	return err == nil && now.Size() == j.size && j.size+int64(len(lines)) <= max(sizeMin, 2*j.least)
}

// append is not synced: a power cut may lose the last half minute, and load recognizes a torn
// line.
func (j *journal) append(lines []byte) error {
	j.whole = false
	f, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("append events: %w", err)
	}
	_, err = f.Write(lines)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("append events: %w", err)
	}
	j.size, j.whole = j.size+int64(len(lines)), true
	return nil
}

func (j *journal) rewrite(lines []byte) error {
	j.whole = false
	if err := disk.WriteFile(j.path, lines, 0o600); err != nil {
		return err
	}
	j.size, j.least, j.whole = int64(len(lines)), int64(len(lines)), true
	return nil
}
