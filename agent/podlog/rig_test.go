package podlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// epoch is the time of line 0; each line comes a second after the one before.
var epoch = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// entryOf writes a line of a file.
func entryOf(n int, stream, tag, text string) string {
	return fmt.Sprintf("%s %s %s %s\n", epoch.Add(time.Duration(n)*time.Second).Format(time.RFC3339Nano), stream, tag, text)
}

// script makes lines of a file of words: "o:text" is a line on stdout, "e:text"
// one on stderr, and with capital letters a part of one. Lines are numbered from n on.
func script(n int, words string) string {
	var b strings.Builder
	for k, w := range strings.Fields(words) {
		stream, text, _ := strings.Cut(w, ":")
		name := map[string]string{"o": Stdout, "e": Stderr}[strings.ToLower(stream)]
		tag := "F"
		if strings.ToLower(stream) != stream {
			tag = "P"
		}
		b.WriteString(entryOf(n+k, name, tag, text))
	}
	return b.String()
}

// folder makes a container's folder of files; those with .gz are compressed.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	return dir
}

func put(t testing.TB, path, text string) {
	t.Helper()
	data := []byte(text)
	if strings.HasSuffix(path, ".gz") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(data)
		z.Close()
		data = b.Bytes()
	}
	if err := os.WriteFile(path, data, 0o640); err != nil {
		t.Fatal(err)
	}
}

func ptr(n int64) *int64 { return &n }

// readAll returns what Read emits: words as script takes them, with + behind
// what goes on and before what did.
func readAll(t testing.TB, dir string, o Options) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var words []string
	err := Read(ctx, dir, o, func(l Line) error {
		word := l.Stream[3:4] + ":" + string(l.Text)
		if l.Continued {
			word = "+" + word
		}
		if l.Partial {
			word += "+"
		}
		words = append(words, word)
		return nil
	})
	return strings.Join(words, " "), err
}

// ended is a closed channel.
func ended() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// truncate halves a file.
func truncate(t testing.TB, path string) {
	t.Helper()
	i, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, i.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
}
