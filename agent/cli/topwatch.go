package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"monopod/agent/cli/print"
)

// topEvery is how often --watch refreshes.
const topEvery = 2 * time.Second

// TopWatch prints what Top does every two seconds, in place, until ctx ends. rows
// is how many lines the terminal has. A question that is not answered is said in
// its place and asked again.
func TopWatch(ctx context.Context, w io.Writer, rows func() int, o TopOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	tick := time.NewTicker(topEvery)
	defer tick.Stop()
	fmt.Fprint(w, "\x1b[2J") // once: later screens are written over the last one
	for {
		text, err := top(ctx, o)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			text = []byte(print.OneLine(err.Error()) + "\n")
		}
		if _, err := w.Write(inPlace(text, rows())); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// inPlace returns text as one write that replaces the screen without clearing it
// first: to the top, each line with the rest of it erased, then all below. Lines
// that do not fit on the screen are counted.
func inPlace(text []byte, rows int) []byte {
	if all := bytes.Count(text, []byte("\n")); rows > 1 && all >= rows {
		end := 0
		for range rows - 2 {
			end += bytes.IndexByte(text[end:], '\n') + 1
		}
		text = fmt.Appendf(slices.Clip(text[:end]), "(%d more lines)\n", all-(rows-2))
	}
	return slices.Concat([]byte("\x1b[H"), bytes.ReplaceAll(text, []byte("\n"), []byte("\x1b[K\n")), []byte("\x1b[J"))
}
