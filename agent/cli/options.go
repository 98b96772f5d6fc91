package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
)

// Options says what Ps, Describe, Events and Images print and how.
type Options struct {
	client.Source
	print.Format               // Now: zero means now
	Choice       client.Choice // Ps: of pods
	Files        bool          // Ps: list files instead of pods
	Endpoint     string        // Ps: of the runtime, asked where no agent runs; "": the last agent's, else the first that exists
	Err          io.Writer     // where it is said that no agent runs
}

// open returns all that is known, and says so if no agent runs.
func (o Options) open(ctx context.Context) (*client.Known, error) {
	k, err := o.Source.All(ctx)
	if err == nil && k.Down() && o.Err != nil {
		fmt.Fprintln(o.Err, "monopod: "+k.DownWords(o.Socket, o.Now))
	}
	return k, err
}

// notes is where words go that are no part of a table in a pipe.
func (o Options) notes() io.Writer { return cmp.Or(o.Err, io.Discard) }

// on sets how w can show it, and where the words go.
func (o *Options) on(c *cli.Context) *Options {
	o.Format, o.Err = o.Format.On(c.App.Writer, os.Getenv), c.App.ErrWriter
	return o
}

// downCode makes exit code 3 of an agent that does not run, which was said.
func downCode(err error) error {
	if errors.Is(err, client.ErrDown) {
		return cli.Exit("", command.ExitDown)
	}
	return err
}
