package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// unpacked returns the texts of an archive by name, all of which must be for root only.
func unpacked(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	files, all := tar.NewReader(zip), map[string]string{}
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode != 0o600 || !h.ModTime.Equal(at) {
			t.Errorf("%s has mode %o and time %s", h.Name, h.Mode, h.ModTime)
		}
		all[h.Name] = string(text)
	}
}

func TestAnArchiveHasItsPartsAndSaysWhatIsMissing(t *testing.T) {
	var out bytes.Buffer
	s := &Secrets{}
	s.Add("hunter2-hunter2")
	written, err := Write(&out, "d", at, []Part{
		{Name: "ps.txt", What: "the pods", Text: "web runs with hunter2-hunter2\n"},
		{Name: "events.txt", What: "the events", Err: errors.New("no agent answers\nthe password hunter2-hunter2")},
		{Name: "agent.log", What: "the log"},
		{Name: "half.txt", What: "half", Text: "some\n", Err: errors.New("the disk fails")},
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	all := unpacked(t, &out)
	if len(all) != 3 || len(written) != 3 || all["d/ps.txt"] != "web runs with <elided>\n" || all["d/half.txt"] != "some\n" {
		t.Errorf("the archive has %q, and the parts said to be written are %v", all, written)
	}
	for _, line := range []string{
		"ps.txt                             the pods\n",
		"-                                  the events: no agent answers the password <elided>\n",
		"-                                  the log: there is none\n",
		"half.txt                           half (the disk fails)\n",
	} {
		if about := all["d/about.txt"]; !strings.Contains(about, line) {
			t.Errorf("about.txt is\n%s\nwant the line %q", about, line)
		}
	}
}

func TestOfALongPartItsEndIsKept(t *testing.T) {
	var out bytes.Buffer
	text := strings.Repeat("a line of a log\n", MaxPart/10) + "the last line"
	if _, err := Write(&out, "d", at, []Part{{Name: "log", What: "a log", Text: text}}, &Secrets{}); err != nil {
		t.Fatal(err)
	}
	all := unpacked(t, &out)
	kept := all["d/log"]
	if len(kept) > MaxPart || len(kept) < MaxPart-20 || !strings.HasPrefix(kept, "a line of") || !strings.HasSuffix(kept, "\nthe last line") {
		t.Errorf("%d bytes are kept, which begin with %.20q and end with %q", len(kept), kept, kept[max(0, len(kept)-20):])
	}
	if !strings.Contains(all["d/about.txt"], "a log (only its last 10485") {
		t.Errorf("about.txt does not say so:\n%s", all["d/about.txt"])
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestADiskThatIsFullIsAnError(t *testing.T) {
	_, err := Write(full{}, "d", at, nil, &Secrets{})
	if err == nil || err.Error() == "" {
		t.Fatalf("the error is %v", err)
	}
}

// What is left of a value that was cut when it was collected is not in the archive.
func TestAValueThatIsCutIsNotKept(t *testing.T) {
	s := &Secrets{}
	s.Add("correct horse")
	for _, rest := range []string{strings.Repeat("x", tailSize-5), "\n" + strings.Repeat("correct horse\n", tailSize/14-1) + strings.Repeat("x", 16)} {
		var end Tail
		for _, text := range []string{strings.Repeat("y", 3*tailSize), "correct horse", rest} {
			_, _ = end.Write([]byte(text))
		}
		p := end.Part("log", "a log", nil)
		if len(p.Text) != tailSize || !p.Cut {
			t.Fatalf("%d bytes are kept", len(p.Text))
		}
		var out bytes.Buffer
		written, err := Write(&out, "d", at, []Part{p}, s)
		if err != nil || len(written) != 2 || strings.Contains(written[1].Text, "horse") {
			t.Errorf("%v: %d parts have what is left of the value", err, len(written))
		}
	}
}
