package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"monopod/agent/cli/print"
)

// topEvery is how often --watch refreshes.
const topEvery = 2 * time.Second

// TopWatch prints what Top does every two seconds, in place, until ctx ends. rows
// is how many lines the terminal has. A question that is not answered is said in
// its place and asked again.
func TopWatch(ctx context.Context, w io.Writer, rows func() int, o TopOptions) error {
	if err := o.Check(); err != nil {
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
		if _, err := w.Write(print.InPlace(text, rows())); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
