package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
)

// twin is the content of the second file of two that hold the same.
type twin struct {
	Content string `json:"content"`
}

// TwinOf is where the twin of a file is.
func TwinOf(path string) string { return path + ".twin" }

// Twin returns the content of the twin of a file. It is written before the file: a file
// without a twin counts, a twin alone does not.
func Twin(content []byte) ([]byte, error) {
	b, err := json.Marshal(twin{string(content)})
	if err != nil {
		return nil, err
	}
	return append(Seal(b), '\n'), nil
}

// ReadTwin reads a file that has a twin, of which one is enough. again is not nil if both
// must be written again with this content. *Damaged with a content to write means that
// the other one of the two was read.
func ReadTwin(path string, parse func([]byte) error) (again []byte, err error) {
	var second twin
	var content []byte
	lost := Read(TwinOf(path), func(b []byte) error {
		if !bytes.HasPrefix(b, []byte(head)) {
			return errors.New("it has no checksum")
		}
		return JSON(&second)(b)
	})
	whole := func(b []byte) error {
		if lost == nil && string(b) != second.Content {
			return errors.New("its twin holds something else, and its checksum is right")
		}
		content = bytes.Clone(b)
		return parse(b)
	}
	err = Read(path, whole)
	d := (*Damaged)(nil)
	switch {
	case errors.As(err, &d) && lost == nil && parse([]byte(second.Content)) == nil:
		d.Then = "its twin was read"
		return []byte(second.Content), err
	case err != nil || lost == nil:
		return nil, err
	case errors.As(lost, &d):
		d.Then = "the file beside it was read"
		return content, lost
	case errors.Is(lost, fs.ErrNotExist):
		return content, nil
	}
	return nil, nil
}
