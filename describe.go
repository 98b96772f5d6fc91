package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	acli "monopod/agent/cli"
)

func describeCommand() *command {
	var o acli.DescribeOptions
	return &command{
		name: "describe", args: "[POD ...]", usage: "tell all about pods: containers, probes, volumes, problems, events",
		about: "Without a POD it tells of all. A POD is meant by its name in the manifest or its full name,\n" +
			"with its namespace before it if that is not enough, as in kube-system/web.\n" +
			"Where the agent does not run, this is said on standard error, what it reported last is\n" +
			"shown, and the exit code is 3.",
		flags: func(f *pflag.FlagSet) {
			outputFlag(f, &o.Output, "json or yaml: the v1 Pod")
			sourceFlags(f, &o.Source)
		},
		run: func(ctx context.Context, c *call) error {
			o.Pods = c.args
			o.Color, o.Err = acli.Colored(c.out, os.Getenv), c.err
			return downCode(acli.Describe(ctx, c.out, o))
		},
	}
}
