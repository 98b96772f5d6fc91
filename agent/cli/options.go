package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
)

// Options says what Ps, Describe, Events and Images print and how.
type Options struct {
	client.Source
	print.Format               // Now: zero means now
	Choice       client.Choice // Ps: of pods
	Endpoint     string        // Ps: of the runtime, asked where no agent runs; "": the first that exists
	Err          io.Writer     // where it is said that no agent runs
}

// open returns all that is known, and says so if no agent runs.
func (o Options) open(ctx context.Context) (*client.Known, error) {
	k, err := o.Source.All(ctx)
	if err == nil && k.Down() && o.Err != nil {
		fmt.Fprintln(o.Err, "monopod: "+client.DownWords(o.Socket, k.Seen, o.Now))
	}
	return k, err
}

// downCode makes exit code 3 of an agent that does not run, which was said.
func downCode(err error) error {
	if errors.Is(err, client.ErrDown) {
		return cli.Exit("", exitDown)
	}
	return err
}
