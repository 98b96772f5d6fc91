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

// Options is what Ps, Describe, Events and Images print and how.
type Options struct {
	client.Source
	print.Format               // Now: zero means now
	Choice       client.Choice // Ps: of pods
	Files        bool          // Ps: list files instead of pods
	Endpoint     string        // Ps: of the runtime, used if no agent runs; "": the last agent's, else the first that exists
	Err          io.Writer     // for the message that no agent runs
}

// open returns everything that is known, and prints a message if no agent runs.
func (o Options) open(ctx context.Context) (*client.Known, error) {
	k, err := o.Source.All(ctx)
	if err == nil && k.Down() && o.Err != nil {
		fmt.Fprintln(o.Err, "monopod: "+k.DownWords(o.Socket, o.Now))
	}
	return k, err
}

// notes is the writer for messages that are no part of a table in a pipe.
func (o Options) notes() io.Writer { return cmp.Or(o.Err, io.Discard) }

// on sets the format for the terminal, and the writer of messages.
func (o *Options) on(c *cli.Context) *Options {
	o.Format, o.Err = o.Format.On(c.App.Writer, os.Getenv), c.App.ErrWriter
	return o
}

// downCode returns exit code 3 for an agent that does not run, which was printed.
func downCode(err error) error {
	if errors.Is(err, client.ErrDown) {
		return cli.Exit("", command.ExitDown)
	}
	return err
}
