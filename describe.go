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
			"with its namespace before it if that is not enough, as in kube-system/web.",
		flags: func(f *pflag.FlagSet) {
			outputFlag(f, &o.Output, "json or yaml: the v1 Pod")
			socketFlag(f, &o.Socket)
			filesFlag(f, &o.Root)
		},
		run: func(ctx context.Context, c *call) error {
			o.Pods = c.args
			o.Color, o.Notes = acli.Colored(c.out, os.Getenv), c.err
			return acli.Describe(ctx, c.out, o)
		},
	}
}
