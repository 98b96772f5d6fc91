package owner

import (
	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
)

// Forget is the command forget.
func Forget() *cli.Command {
	var o client.Request
	return &cli.Command{
		Name: "forget", ArgsUsage: "POD ...", Usage: "accept that pods and objects are gone whose manifests cannot be read",
		Description: `
A pod keeps running by its last good version while its manifest is missing
without proof that somebody removed it, or cannot be read: the disk of the
manifests is not mounted, their folder is missing or was made again, the file
does not parse. This accepts the removal by hand: the pod is stopped with its
preStop hooks and its grace and removed, with its volumes and logs, and no
restart of the agent brings it back. A manifest that gives it again starts it
again, as a new pod.

A ConfigMap or a Secret is meant as in configmap/NAME or secret/NAMESPACE/NAME. It
counts on in the same way while its manifest is missing without proof, and
monopod ps --files lists it. No container is stopped for it.

A pod whose manifest is there and valid is refused: remove the file instead. The
command does not wait until all of the pod is gone; monopod wait POD --for gone
does.

Exit codes: 0; 1: a pod was refused, or there is none of that name; 2: wrong
flags; 3: the agent does not run.`,
		Flags: []cli.Flag{
			command.NamespaceFlag(&o.Choice.Namespace),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return command.UsageError("forget which pod? As in `monopod forget web`")
			}
			o.Choice.Names, o.Out = c.Args().Slice(), c.App.Writer
			return command.Down(client.Forget(c.Context, o))
		},
	}
}
