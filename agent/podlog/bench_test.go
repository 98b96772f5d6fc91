package podlog

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// BenchmarkTail200MB reads the last lines of a log of 200 MB, and all of it.
func BenchmarkTail200MB(b *testing.B) {
	dir := b.TempDir()
	f, err := os.Create(dir + "/0.log")
	if err != nil {
		b.Fatal(err)
	}
	line := entryOf(0, Stdout, "F", strings.Repeat("x", 60))
	w := bufio.NewWriterSize(f, 1<<20)
	for n := 0; n < 200<<20; n += len(line) {
		w.WriteString(line)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	f.Close()
	for _, row := range []struct {
		name string
		o    Options
	}{
		{"10 lines", Options{Tail: ptr(10)}},
		{"100000 lines", Options{Tail: ptr(100_000)}},
		{"a stream that is not there", Options{Tail: ptr(10), Stream: Stderr}},
		{"all", Options{}},
		{"all before now", Options{Since: time.Now().AddDate(9, 0, 0)}},
	} {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
				p := Printer{W: io.Discard}
				if err := Read(context.Background(), dir, row.o, p.Print); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
