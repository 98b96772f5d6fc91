package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/pflag"

	acli "monopod/agent/cli"
)

func psCommand() *command {
	var o acli.Options
	return &command{
		name: "ps", args: "[POD ...]", usage: "list the pods and what is wrong with them",
		about: `
Where the agent does not run, this is said on standard error, what it reported last is
shown, with what the runtime says of it now, and the exit code is 3.`,
		flags: func(f *pflag.FlagSet) {
			outputFlag(f, &o.Output, "wide, json or yaml")
			namespaceFlag(f, &o.Choice.Namespace)
			selectorFlag(f, &o.Choice.Selector)
			sourceFlags(f, &o.Source)
			f.StringVar(&o.Endpoint, "runtime-endpoint", "", "the CRI runtime's socket, unix://`PATH`, for when the agent does not run")
		},
		run: func(ctx context.Context, c *call) error {
			o.Choice.Names = c.args
			if err := o.Choice.Check(); err != nil {
				return exit(exitUsage, "%v", err)
			}
			o.Color, o.Err = acli.Colored(c.out, os.Getenv), c.err
			return downCode(acli.Ps(ctx, c.out, o))
		},
	}
}

// downCode makes exit code 3 of an agent that does not run, which was said.
func downCode(err error) error {
	if errors.Is(err, acli.ErrDown) {
		return exit(exitDown, "")
	}
	return err
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
