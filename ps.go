package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	acli "monopod/agent/cli"
)

func outputFlag(f *pflag.FlagSet, to *string, choices string) {
	f.StringVarP(to, "output", "o", "", "print as `FORMAT`: "+choices)
}

func socketFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "socket", defaultSocket, "the `PATH` of the agent's socket")
}

func psCommand() *command {
	var o acli.Options
	return &command{
		name: "ps", usage: "list the pods and what is wrong with them",
		flags: func(f *pflag.FlagSet) {
			outputFlag(f, &o.Output, "wide, json or yaml")
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *call) error {
			if err := c.none(""); err != nil {
				return err
			}
			o.Color = acli.Colored(c.out, os.Getenv)
			return acli.Ps(ctx, c.out, o)
		},
	}
}

func imagesCommand() *command {
	var o acli.Options
	return &command{
		name: "images", usage: "list the images, who uses them, and which are to go",
		flags: func(f *pflag.FlagSet) {
			outputFlag(f, &o.Output, "wide, json or yaml")
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *call) error {
			if err := c.none(""); err != nil {
				return err
			}
			return acli.Images(ctx, c.out, o)
		},
	}
}

func versionCommand() *command {
	var output string
	return &command{
		name: "version", usage: "print the version",
		flags: func(f *pflag.FlagSet) { outputFlag(f, &output, "json or yaml") },
		run: func(_ context.Context, c *call) error {
			return acli.PrintVersion(c.out, output, acli.Version())
		},
	}
}
