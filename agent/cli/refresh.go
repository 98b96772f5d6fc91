package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"monopod/agent/cli/command"
	"monopod/agent/cli/terminal"
	"monopod/agent/print"
)

// refreshEvery is how often --watch refreshes.
const refreshEvery = 2 * time.Second

// TopWatch prints what Top does every two seconds, in place, until ctx ends. rows
// is how many lines the terminal has.
func TopWatch(ctx context.Context, w io.Writer, rows func() int, o TopOptions) error {
	if err := o.Check(); err != nil {
		return err
	}
	return refresh(ctx, w, rows, func(ctx context.Context) ([]byte, error) { return top(ctx, o) })
}

// refresh prints the result of ask every two seconds, in place, until ctx ends. An error is
// printed in its place, and ask is called again.
func refresh(ctx context.Context, w io.Writer, rows func() int, ask func(context.Context) ([]byte, error)) error {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	fmt.Fprint(w, "\x1b[2J") // once: later screens are written over the last one
	for {
		text, err := ask(ctx)
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

// screenOf returns the number of lines of the terminal, which --watch needs, or an error that
// names the alternative.
func screenOf(c *cli.Context, output, instead string) (rows func() int, err error) {
	screen, _ := c.App.Writer.(*os.File)
	switch {
	case output == "json" || output == "yaml" || output == "name":
		return nil, command.UsageError("--watch prints no %s; leave one of them out", output)
	case !terminal.Is(screen) && instead != "":
		return nil, command.UsageError("--watch needs a terminal; %s", instead)
	case !terminal.Is(screen):
		return nil, command.UsageError("--watch needs a terminal; leave it out")
	}
	return func() int {
		_, rows, _ := term.GetSize(int(screen.Fd()))
		return rows
	}, nil
}
