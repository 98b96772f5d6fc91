package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
)

// Ps prints the pods of the agent, and below them all problems, in words. If no agent runs it
// prints the last report, and returns ErrDown.
func Ps(ctx context.Context, w io.Writer, o Options) error {
	o.Now = cmp.Or(o.Now, time.Now())
	k, err := o.open(ctx)
	if err != nil {
		return err
	}
	o.Choice = o.Choice.Plain(k.Pods)
	if k.Pods, err = o.Choice.Of(k.Pods); err != nil {
		return err
	}
	l := print.Listing{Pods: k.Pods, Manifests: k.Manifests, Some: o.Choice.Any(), None: o.Choice.None(), Files: o.Files}
	if !o.Files && (o.Output == "" || o.Output == "wide") {
		l.Words = o.words(ctx, k)
		if !k.Down() {
			l.Pods = client.WithLastLines(ctx, o.Socket, k.Pods)
		}
	}
	if err := print.Ps(w, o.notes(), l, o.Format); err != nil {
		return err
	}
	return k.DownError()
}

// words returns the problems of the runtime and the node, or if no agent runs what has happened to
// the containers since.
func (o Options) words(ctx context.Context, k *client.Known) []string {
	if k.Down() {
		return append(print.NodeHeldWords(k.NodeHeld), client.Stopped(ctx, k.Pods, cmp.Or(o.Endpoint, k.Runtime.Endpoint))...)
	}
	words := print.RuntimeWords(k.Runtime, o.Now)
	var node v1.Node
	if client.GetJSON(ctx, o.Socket, "/node", &node) == nil { // an agent that just starts has no report on it yet
		words = append(words, print.NodeWords(&node, k.Runtime.Up, o.Now)...)
	}
	return words
}

// watchPs prints what Ps does every two seconds, in place.
func watchPs(c *cli.Context, o Options) error {
	rows, err := screenOf(c, o.Output, "`monopod events -w` and `monopod wait` need none")
	if err != nil {
		return err
	}
	return refresh(c.Context, c.App.Writer, rows, func(ctx context.Context) ([]byte, error) {
		var text bytes.Buffer
		o := o.on(c) // the terminal may have another size now
		o.Err = &text
		err := Ps(ctx, &text, *o)
		if errors.Is(err, client.ErrDown) {
			err = nil // it was printed
		}
		return text.Bytes(), err
	})
}

func psCommand() *cli.Command {
	var o Options
	return &cli.Command{
		Name: "ps", ArgsUsage: "[POD ...]", Usage: "list the pods and what is wrong with them",
		Description: `
What is wrong stands below the pods; where the output is no terminal it goes to
standard error, and all pods are told with their namespace. The format name is
a line NAMESPACE/NAME for each pod, which all commands take. Several notes on
what has no effect in a file, such as a Service, are one line; --files -o wide
has each.

--files lists the manifest files and what became of each pod, ConfigMap and
Secret in them: accepted; waiting, to be admitted or for the version before it;
superseded, as another file gives it; masked, as an empty file of its name in a
higher folder is; rejected; or leaving, as the file is gone and it goes, too, once
that is certain.
HASH is of the pod in the file, RUNNING of the one that runs. As json or yaml this is status/manifests.json.

The same and more is a page for a browser on this machine: http://127.0.0.1:10255/,
or where --listen of run says.

Where the agent does not run, ps says so on standard error and shows what it
reported last, with what the runtime says of it now; the exit code is 3.`,
		Flags: []cli.Flag{
			command.OutputFlag(&o.Output, "wide", "name", "json", "yaml"),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print names alone, as -o name"},
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "those that have ended, too, as without it"},
			command.NamespaceFlag(&o.Choice.Namespace),
			command.AllNamespacesFlag(&o.AllNamespaces),
			&cli.BoolFlag{Name: "files", Destination: &o.Files, Usage: "list the manifest files instead, and what became of each"},
			&cli.BoolFlag{Name: "no-headers", Destination: &o.NoHeaders, Usage: "leave the line with the columns' names out"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "refresh every two seconds; needs a terminal"},
			command.SelectorFlag(&o.Choice.Selector),
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
			command.EndpointFlag(&o.Endpoint, ", for when the agent does not run (default: the agent's)"),
		},
		Action: func(c *cli.Context) error {
			o.Choice.Names = c.Args().Slice()
			if c.Bool("quiet") {
				if o.Output != "" && o.Output != "name" {
					return command.UsageError("-q and -o %s exclude each other", o.Output)
				}
				o.Output = "name"
			}
			if err := o.Choice.Check(); err != nil {
				return command.UsageError("%v", err)
			}
			o.on(c)
			if c.Bool("watch") {
				return watchPs(c, o)
			}
			return downCode(Ps(c.Context, c.App.Writer, o))
		},
	}
}
