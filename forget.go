package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	acli "monopod/agent/cli"
)

func forgetCommand() *command {
	var o acli.ForgetOptions
	return &command{
		name: "forget", args: "POD ...", usage: "accept that pods are gone whose manifests cannot be read",
		about: `
A pod keeps running by its last good version while its manifest is missing without proof
that somebody removed it, or cannot be read: the disk of the manifests is not mounted, their
folder is missing or was made again, the file does not parse. This accepts the removal by
hand: the pod is stopped with its preStop hooks and its grace and removed, with its volumes
and logs, and no restart of the agent brings it back. A manifest that gives it again starts
it again, as a new pod.

A pod whose manifest is there and valid is refused: remove the file instead. It is not waited
until all of the pod is gone; monopod wait POD --for gone does that.

Exit codes: 0; 1: a pod was refused, or there is none of that name; 2: wrong flags; 3: the
agent does not run.`,
		flags: func(f *pflag.FlagSet) {
			namespaceFlag(f, &o.Namespace)
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *call) error {
			if len(c.args) == 0 {
				return exit(exitUsage, "forget which pod? As in `monopod forget web`")
			}
			o.Names, o.Out = c.args, c.out
			err := acli.Forget(ctx, o)
			if errors.Is(err, acli.ErrDown) {
				return exit(exitDown, "%v", err)
			}
			return err
		},
	}
}
