// Package owner is the owner's commands for what no manifest has: stop, start, hold, release,
// restart, rollback and forget.
package owner

import (
	"context"
	"net/url"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
)

const codes = `

Exit codes: 0; 1: it was refused or given up; 2: wrong flags; 3: the agent does not
run; 124: --timeout was over.`

// Stop is the command stop.
func Stop() *cli.Command {
	return lasting("stop", "stop pods, whatever their manifests say, until they are started", `
Pods stop as before a shutdown of the machine: those that are critical last, and those
that start after others before these; with --no-wait all at once. The containers of
each are stopped in order, with their preStop hooks and their grace, and the pod stays
stopped over restarts of the agent, reboots of the machine and edits of its manifest.
Its volumes stay, what it had allocated is free for other pods. An edit that replaces
a running pod replaces a stopped one when it is started, any other leaves it its uid
and its volumes. A pod that never restarts, and a Job, run again with the attempt that
they were in. When its manifest is removed the pod goes, and the stop is forgotten; a
pod that goes meanwhile counts as stopped.

With --all none of the agent's pods runs any more, as is right before a purge of the
package; "monopod start --all" undoes that.`+codes, client.Stop)
}

// Start is the command start.
func Start() *cli.Command {
	return lasting("start", "run stopped pods again", `
The newest version of the manifest runs, once it has a place on the node. The command
waits until each container of it runs, or has run and ended; it need not be ready.`+codes, client.Start)
}

// lasting is a command that waits until it is done.
func lasting(name, usage, about string, do func(context.Context, client.Request) error) *cli.Command {
	var o client.Request
	return &cli.Command{
		Name: name, ArgsUsage: "POD ... | --all | -l LABELS", Usage: usage, Description: about,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "all pods"},
			&cli.BoolFlag{Name: "no-wait", Destination: &o.NoWait, Usage: "return as soon as it is sure to happen"},
			&cli.DurationFlag{Name: "timeout", Destination: &o.Timeout,
				Usage: "the longest `TIME` to wait for all of it, such as 90s; 0: no limit. The exit code is 124 then"},
			command.NamespaceFlag(&o.Choice.Namespace),
			command.SelectorFlag(&o.Choice.Selector),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			if err := choose(c, &o); err != nil {
				return err
			}
			switch {
			case c.NArg() == 0 && !c.Bool("all") && o.Choice.Selector == "":
				return command.UsageError("%s which pods? Name them, or give --all or -l LABELS", name)
			case o.Timeout < 0:
				return command.UsageError("--timeout %s: it must not be negative", o.Timeout)
			}
			return command.Waited(c.Context, do(c.Context, o))
		},
	}
}

// Hold is the command hold.
func Hold() *cli.Command {
	var lasts time.Duration
	var reason string
	k := gate("hold", "keep pods, or all of the node, from being updated and removed", `
New versions, removals, and restarts and reloads for changed config wait, and the pod's status says
so. Containers that crash are restarted, probes count on, and a version that comes back
after a failed update does not wait. Without a pod all of the node is held: pods that
are new wait, too. A hold lasts over restarts of the agent and reboots, until it is
released or its time is over. A held pod that is stopped and started runs the version
that was held.`+codes, client.Hold, func() (url.Values, error) {
		switch {
		case lasts < 0:
			return nil, command.UsageError("--for %s: it must not be negative", lasts)
		case lasts == 0:
			return query("reason", reason), nil
		}
		return query("for", lasts.String(), "reason", reason), nil
	})
	k.Flags = append(k.Flags,
		&cli.DurationFlag{Name: "for", Destination: &lasts, Usage: "for this `TIME`, such as 2h; 0: until it is released"},
		&cli.StringFlag{Name: "reason", Destination: &reason, Usage: "the `TEXT` that says why"})
	return k
}

// Release is the command release.
func Release() *cli.Command {
	return gate("release", "let held pods be updated and removed again", `
Without a pod this ends the hold of the node; holds of single pods stay.`+codes, client.Release,
		func() (url.Values, error) { return nil, nil })
}

// gate is a command about pods or, without any, the node.
func gate(name, usage, about string, do func(context.Context, client.Request) error, queryOf func() (url.Values, error)) *cli.Command {
	var o client.Request
	return &cli.Command{
		Name: name, ArgsUsage: "[POD ...] | --all | -l LABELS", Usage: usage, Description: about,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "each of the pods that there are"},
			command.NamespaceFlag(&o.Choice.Namespace),
			command.SelectorFlag(&o.Choice.Selector),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) (err error) {
			if err := choose(c, &o); err != nil {
				return err
			}
			if o.Query, err = queryOf(); err != nil {
				return err
			}
			o.Node = c.NArg() == 0 && !c.Bool("all") && o.Choice.Selector == ""
			if o.Node && o.Choice.Namespace != "" {
				return command.UsageError("-n %s: name pods, or give --all or -l LABELS", o.Choice.Namespace)
			}
			return command.Waited(c.Context, do(c.Context, o))
		},
	}
}

// query returns pairs of names and values, without empty ones.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for k := 0; k < len(pairs); k += 2 {
		if pairs[k+1] != "" {
			q.Set(pairs[k], pairs[k+1])
		}
	}
	return q
}

// choose sets which pods are chosen.
func choose(c *cli.Context, o *client.Request) error {
	o.Choice.Names, o.Out, o.Err = c.Args().Slice(), c.App.Writer, c.App.ErrWriter
	if c.NArg() > 0 && c.Bool("all") {
		return command.UsageError("name pods or give --all, not both")
	}
	if err := o.Choice.Check(); err != nil {
		return command.UsageError("%v", err)
	}
	return nil
}
