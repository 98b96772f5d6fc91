package print

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Format is how something is printed.
type Format struct {
	Output        string    // "", wide, json or yaml; of pods name, too
	Color         bool      // colour good and bad
	Now           time.Time // the time that ages refer to
	Columns       int       // of the terminal; 0: the output is none, and what is no table goes elsewhere
	NoHeaders     bool
	AllNamespaces bool // name the namespace even if it tells nothing
}

// On returns f with what w can show. If w is no terminal, columns do not depend on their content.
func (f Format) On(w io.Writer, env func(string) string) Format {
	f.Color, f.Columns = Colored(w, env), 0
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		if f.Columns, _, _ = term.GetSize(int(file.Fd())); f.Columns <= 0 {
			f.Columns = anyColumns
		}
	}
	return f
}

// anyColumns are the columns of a terminal of unknown width.
const anyColumns = 1000

// namespaces reports whether the column of namespaces is shown; isInformative: one of them is not
// the default one.
func (f Format) namespaces(isInformative bool) bool {
	return isInformative || f.AllNamespaces || f.Columns == 0 || f.Output == "wide"
}

// write writes a table to w, and the text about it below it on a terminal, else to notes, so that
// programs read only the table.
func (f Format) write(w, notes io.Writer, table *bytes.Buffer, words []string) error {
	var text bytes.Buffer
	for _, word := range words {
		fmt.Fprintln(&text, wrapped(word, f.Columns, 2))
	}
	if f.Columns == 0 {
		if _, err := w.Write(table.Bytes()); err != nil {
			return err
		}
		_, err := notes.Write(text.Bytes())
		return err
	}
	if table.Len() > 0 && text.Len() > 0 {
		table.WriteByte('\n')
	}
	_, err := w.Write(append(table.Bytes(), text.Bytes()...))
	return err
}

// Colored reports whether output to w should have colours: on a terminal that supports them,
// unless NO_COLOR is set (no-color.org).
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
