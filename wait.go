package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	acli "monopod/agent/cli"
)

func waitCommand() *command {
	var o acli.WaitOptions
	var all bool
	return &command{
		name: "wait", args: "POD ... | --all | -l LABELS", usage: "wait until pods are ready, or what else they are to come to",
		about: `
What can be waited for: ready, running, succeeded, failed, completed (one or the other),
gone, and condition=TYPE[=STATUS], such as condition=Initialized. A pod that is not known
is waited for, too, and so is an agent that does not run.

Exit codes: 0: all pods have come to it; 1: one of them never will, as a pod that has
failed will not be ready; 124: the time was over.`,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&o.For, "for", "ready", "the `OUTCOME` to wait for")
			f.DurationVar(&o.Timeout, "timeout", 0, "the longest `TIME` to wait, such as 90s; 0: no limit")
			f.BoolVar(&all, "all", false, "wait for all pods")
			namespaceFlag(f, &o.Choice.Namespace)
			selectorFlag(f, &o.Choice.Selector)
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *call) error {
			o.Choice.Names, o.Out, o.Err = c.args, c.out, c.err
			switch {
			case len(c.args) == 0 && !all && o.Choice.Selector == "":
				return exit(exitUsage, "wait for which pods? Name them, or give --all or -l LABELS")
			case len(c.args) > 0 && all:
				return exit(exitUsage, "name pods or give --all, not both")
			case o.Timeout < 0:
				return exit(exitUsage, "--timeout %s: it is less than no time", o.Timeout)
			}
			if err := o.Check(); err != nil {
				return exit(exitUsage, "%v", err)
			}
			return waited(ctx, acli.Wait(ctx, o))
		},
	}
}

func restartCommand() *command {
	var o acli.RestartOptions
	return &command{
		name: "restart", args: "POD[/CONTAINER] ...", usage: "restart a container, or a whole pod",
		about: `
A container is stopped, with its preStop hook and its grace, and started anew at once, even
if it waits after crashes; these are forgotten. A pod without a container's name is replaced
as a whole, with a new sandbox and its init containers run again; its uid and its volumes
stay. A pod that has ended is not run again.

It is waited until all of it runs again; it need not be ready. From the moment on at which
the agent has it written down it happens, whatever becomes of the agent.`,
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&o.NoWait, "no-wait", false, "return as soon as it is sure to happen")
			f.DurationVar(&o.Timeout, "timeout", 0, "the longest `TIME` to wait for all of it, such as 90s; 0: no limit. The exit code is 124 then")
			namespaceFlag(f, &o.Namespace)
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *call) error {
			switch {
			case len(c.args) == 0:
				return exit(exitUsage, "restart what? As in `monopod restart web` or `monopod restart web/nginx`")
			case o.Timeout < 0:
				return exit(exitUsage, "--timeout %s: it is less than no time", o.Timeout)
			}
			o.Names, o.Out = c.args, c.out
			return waited(ctx, acli.Restart(ctx, o))
		},
	}
}

// waited gives the end of a wait that came to nothing its exit code.
func waited(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, acli.ErrTimeout):
		return exit(exitLate, "%v", err)
	case err != nil && ctx.Err() != nil:
		return exit(exitInterrupted, "")
	}
	return err
}
