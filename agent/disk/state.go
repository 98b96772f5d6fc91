package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// limit is larger than any state file, in bytes: the largest is the answer of a manifest URL, of up
// to 10 MiB.
const limit = 32 << 20

// Damaged is the error of a file whose content the agent did not write.
type Damaged struct {
	Path string
	Then string // what was done about it; "": nothing
	Err  error
}

func (d *Damaged) Error() string {
	if d.Then == "" {
		return fmt.Sprintf("%s is damaged: %v", d.Path, d.Err)
	}
	return fmt.Sprintf("%s is damaged: %v; %s", d.Path, d.Err, d.Then)
}

func (d *Damaged) Unwrap() error { return d.Err }

// Read reads a file. parse is called with its content, and returns an error if the agent cannot
// have written that. The error of Read is fs.ErrNotExist if there is nothing at the path, and
// *Damaged if reading the file again would not help.
func Read(path string, parse func([]byte) error) error {
	damaged := func(err error) error { return &Damaged{Path: path, Err: err} }
	fd, s, err := openRegular(unix.AT_FDCWD, path)
	switch {
	case errors.Is(err, ErrLink), errors.Is(err, ErrNotRegular):
		return damaged(err)
	case err != nil:
		return pathError("open", path, err)
	}
	defer unix.Close(fd)
	if s.Size() > limit {
		return damaged(fmt.Errorf("it has %d bytes", s.Size()))
	}
	b, err := readWhole(fd, s.Size(), limit)
	if err != nil {
		return pathError("read", path, err)
	}
	if err := check(b); err != nil {
		return damaged(err)
	}
	if err := parse(b); err != nil {
		return damaged(err)
	}
	return nil
}

// ReadOrAside is Read for the owner of the file: a damaged one is moved aside.
func ReadOrAside(path string, parse func([]byte) error) error {
	err := Read(path, parse)
	if d := (*Damaged)(nil); errors.As(err, &d) {
		d.Then = "it was put aside as " + AsideOf(path)
		if moved := Aside(path); moved != nil {
			d.Then = fmt.Sprintf("it could not be put aside: %v", moved)
		}
	}
	return err
}

// JSON returns a parse function for Read that decodes into v, a pointer. If it returns an error, v
// is unchanged, and the error quotes no value.
func JSON[T any](v *T) func([]byte) error {
	return func(b []byte) error {
		var read T
		if err := json.Unmarshal(b, &read); err != nil {
			return notJSON(err)
		}
		*v = read
		return nil
	}
}

// notJSON returns the error without the values that json's errors quote.
func notJSON(err error) error {
	if s := (*json.SyntaxError)(nil); errors.As(err, &s) {
		return fmt.Errorf("it is not valid JSON from byte %d on", s.Offset)
	}
	if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
		return fmt.Errorf("it has %s where %s belongs, at byte %d", t.Value, t.Type, t.Offset)
	}
	return errors.New("it is not valid JSON")
}

// head is the beginning of a sealed file. The checksum follows, and covers everything behind it.
const (
	head   = `{"sum":"`
	sumLen = 16
)

// Seal returns a JSON object with a checksum as its first field, by which Read detects damage that
// leaves valid JSON. Readers that do not know the field ignore it.
func Seal(object []byte) []byte {
	rest := bytes.TrimSpace(object)[1:]
	all := make([]byte, 0, len(head)+sumLen+len(`",`)+len(rest)+len("\n")) // callers end the line
	all = append(append(all, head...), make([]byte, sumLen)...)
	all = append(all, '"')
	if rest[0] != '}' {
		all = append(all, ',')
	}
	all = append(all, rest...)
	copy(all[len(head):], sum(all[len(head)+sumLen:]))
	return all
}

func sum(b []byte) string {
	s := sha256.Sum256(bytes.TrimRight(b, "\n"))
	return hex.EncodeToString(s[:])[:sumLen]
}

// check compares a file with its checksum. A file without one, from a former agent, passes; a file
// whose beginning is almost that of a sealed file does not.
func check(b []byte) error {
	same := 0
	for k := range min(len(head), len(b)) {
		if b[k] == head[k] {
			same++
		}
	}
	if same < len(head)-2 {
		return nil
	}
	body := len(head) + sumLen
	if line, _, _ := bytes.Cut(b, []byte("\n")); same < len(head) || len(line) < body || sum(line[body:]) != string(line[len(head):body]) {
		return errors.New("its checksum is wrong")
	}
	return nil
}

// Remove removes a file and what was moved aside from its path.
func Remove(path string) error {
	return errors.Join(os.RemoveAll(path), removeAside(path))
}
