package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/print"
)

// Ps prints the pods of the agent, and below them all that is wrong, in words.
// Where no agent runs it prints what one reported last, and returns ErrDown.
func Ps(ctx context.Context, w io.Writer, o Options) error {
	o.Now = cmp.Or(o.Now, time.Now())
	k, err := o.open(ctx)
	if err != nil {
		return err
	}
	if k.Pods, err = o.Choice.Of(k.Pods); err != nil {
		return err
	}
	l := print.Listing{Pods: k.Pods, Manifests: k.Manifests, Some: o.Choice.Any()}
	if o.Output == "" || o.Output == "wide" {
		l.Words = o.words(ctx, k)
	}
	if err := print.Ps(w, l, o.Format); err != nil {
		return err
	}
	if k.Down() {
		return client.ErrDown
	}
	return nil
}

// words say what is wrong with the runtime and the node, or where no agent runs
// what became of the containers since.
func (o Options) words(ctx context.Context, k *client.Known) []string {
	if k.Down() {
		return client.Stopped(ctx, k.Pods, o.Endpoint)
	}
	words := print.RuntimeWords(k.Runtime, o.Now)
	var node v1.Node
	if client.GetJSON(ctx, o.Socket, "/node", &node) == nil { // an agent that just starts has no report on it yet
		words = append(words, print.NodeWords(&node, o.Now)...)
	}
	return words
}

func psCommand() *cli.Command {
	var o Options
	return &cli.Command{
		Name: "ps", ArgsUsage: "[POD ...]", Usage: "list the pods and what is wrong with them",
		Description: `
Where the agent does not run, this is said on standard error, what it reported
last is shown, with what the runtime says of it now, and the exit code is 3.`,
		Flags: []cli.Flag{
			command.OutputFlag(&o.Output, "wide, json or yaml"),
			command.NamespaceFlag(&o.Choice.Namespace),
			command.SelectorFlag(&o.Choice.Selector),
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
			&cli.StringFlag{Name: "runtime-endpoint", Destination: &o.Endpoint,
				Usage: "the CRI runtime's socket, unix://`PATH`, for when the agent does not run"},
		},
		Action: func(c *cli.Context) error {
			o.Choice.Names = c.Args().Slice()
			if err := o.Choice.Check(); err != nil {
				return command.UsageError("%v", err)
			}
			o.Color, o.Err = print.Colored(c.App.Writer, os.Getenv), c.App.ErrWriter
			return downCode(Ps(c.Context, c.App.Writer, o))
		},
	}
}
