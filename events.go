package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	acli "monopod/agent/cli"
)

func eventsCommand() *command {
	var o acli.EventsOptions
	return &command{
		name: "events", args: "[POD]", usage: "show what happened to pods and the node, or to one pod",
		about: "The latest come last. A POD is meant by its name in the manifest or its full name, with its\n" +
			"namespace before it if that is not enough, as in kube-system/web. It may be gone already.\n" +
			"Where the agent does not run, this is said on standard error and what it left is shown.",
		flags: func(f *pflag.FlagSet) {
			f.BoolVarP(&o.Watch, "watch", "w", false, "go on with what happens from now on")
			outputFlag(f, &o.Output, "wide, json or yaml")
			sourceFlags(f, &o.Source)
		},
		run: func(ctx context.Context, c *call) error {
			if len(c.args) > 1 {
				return exit(exitUsage, "events takes one pod, got %q too", c.args[1])
			}
			if len(c.args) == 1 {
				o.Pod = c.args[0]
			}
			o.Color, o.Err = acli.Colored(c.out, os.Getenv), c.err
			return acli.Events(ctx, c.out, o)
		},
	}
}
