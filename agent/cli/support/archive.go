// Package support writes an archive of what explains the state of an agent, without secrets.
package support

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxPart is how many bytes of a part are kept: its end, where the latest is.
const MaxPart = 1 << 20

// Part is a file of the archive.
type Part struct {
	Name string // its path in the archive
	What string // for the reader of the archive, such as "the pods, as ps prints them"
	Text string
	Err  error // why it is missing or incomplete; nil: it is whole
	Cut  bool  // the text had more before it, and so may begin within a value
}

// AboutFile is the file of the archive that says what is in it.
const AboutFile = "about.txt"

// Write writes an archive of the parts, a tar compressed by gzip, without what s hides, and returns
// the parts as they are in it: without those that are empty, the first of them about the others.
// All files are of that time, for root only, and below one folder.
func Write(w io.Writer, dir string, at time.Time, parts []Part, s *Secrets) ([]Part, error) {
	var all []Part
	for _, p := range parts {
		p.Text = s.Hide(p.Text)
		if p.Err != nil {
			p.Err = errors.New(s.Hide(p.Err.Error()))
		}
		if p.Cut {
			p.Text = p.Text[min(s.longest, len(p.Text)):]
		}
		all = append(all, shortened(p))
	}
	about := Part{Name: AboutFile, What: "what is in here", Text: aboutText(at, all)}
	all = slices.DeleteFunc(append([]Part{about}, all...), func(p Part) bool { return p.Text == "" })
	return all, pack(w, dir, at, all)
}

// shortened returns a part with at most MaxPart bytes of its text, from the start of a line on.
func shortened(p Part) Part {
	if len(p.Text) <= MaxPart && !p.Cut {
		return p
	}
	kept := p.Text[max(0, len(p.Text)-MaxPart):]
	if _, rest, ok := strings.Cut(kept, "\n"); ok {
		kept = rest
	}
	cut := fmt.Errorf("only its last %d bytes are here", len(kept))
	p.Text, p.Err = strings.ToValidUTF8(kept, string(utf8.RuneError)), errors.Join(p.Err, cut)
	return p
}

func pack(w io.Writer, dir string, at time.Time, parts []Part) error {
	zip := gzip.NewWriter(w)
	files := tar.NewWriter(zip)
	for _, p := range parts {
		h := &tar.Header{Name: dir + "/" + p.Name, Mode: 0o600, Size: int64(len(p.Text)), ModTime: at, Format: tar.FormatPAX}
		if err := files.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.WriteString(files, p.Text); err != nil {
			return err
		}
	}
	return errors.Join(files.Close(), zip.Close())
}

// aboutText says what is in the archive, and what is not and why.
func aboutText(at time.Time, parts []Part) string {
	var out strings.Builder
	fmt.Fprintf(&out, "What `monopod support` found on %s.\n\n", at.Format(time.RFC3339))
	out.WriteString("Left out: values of Secrets and ConfigMaps, values of variables, headers of probes, and what\n" +
		"the runtime's configuration has for a password, a token, a key or an auth. Where other texts\n" +
		"quote such a value of six characters or more, it is replaced by " + Mark + ".\n" +
		"Values that a former version of a Secret, a ConfigMap or a pod had are not known, and so they\n" +
		"stay where a text quotes them.\n" +
		"Commands and arguments of containers are in here, and what containers have logged.\n\n")
	for _, p := range parts {
		out.WriteString(p.line())
	}
	return out.String()
}

// line describes a part.
func (p Part) line() string {
	switch {
	case p.Text == "" && p.Err == nil:
		return fmt.Sprintf("%-34s %s: there is none\n", "-", p.What)
	case p.Text == "":
		return fmt.Sprintf("%-34s %s: %s\n", "-", p.What, oneLine(p.Err))
	case p.Err != nil:
		return fmt.Sprintf("%-34s %s (%s)\n", p.Name, p.What, oneLine(p.Err))
	}
	return fmt.Sprintf("%-34s %s\n", p.Name, p.What)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
