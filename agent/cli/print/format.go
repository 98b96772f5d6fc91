package print

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Format says how something is printed.
type Format struct {
	Output string    // "", wide, json or yaml
	Color  bool      // colour what tells good from bad
	Now    time.Time // what ages are counted to
}

// Colored says whether output to w should have colours: on a terminal that
// knows them, unless NO_COLOR is set (no-color.org).
func Colored(w io.Writer, env func(string) string) bool {
	f, ok := w.(*os.File)
	return ok && env("NO_COLOR") == "" && env("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// As prints v as json or yaml.
func As(w io.Writer, output string, v any) error {
	var data []byte
	var err error
	if output == "yaml" {
		data, err = YAML(v)
	} else {
		data, err = JSON(v, "  ")
		data = append(data, '\n')
	}
	if err != nil {
		return fmt.Errorf("print as %s: %w", output, err)
	}
	_, err = w.Write(data)
	return err
}
