package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
)

// twin is the content of the second of two files with the same content.
type twin struct {
	Content string `json:"content"`
}

// TwinOf returns the path of a file's twin.
func TwinOf(path string) string { return path + ".twin" }

// Twin returns the content of a file's twin. The twin is written before the file. One without the other
// is valid: an agent may have died between the two, or the disk may have lost one.
func Twin(content []byte) ([]byte, error) {
	b, err := json.Marshal(twin{string(content)})
	if err != nil {
		return nil, err
	}
	return append(Seal(b), '\n'), nil
}

// ReadTwin reads a file that has a twin; one of the two is enough. If again is not nil, the caller
// must write both again with this content. *Damaged together with such a content means that one of
// the two was damaged and the other was read.
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
	case errors.Is(err, fs.ErrNotExist) && lost == nil && parse([]byte(second.Content)) == nil:
		return []byte(second.Content), nil
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
