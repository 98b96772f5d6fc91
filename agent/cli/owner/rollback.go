package owner

import (
	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
)

// Rollback is the command rollback.
func Rollback() *cli.Command {
	var o client.Request
	var to, reason string
	return &cli.Command{
		Name: "rollback", ArgsUsage: "POD", Usage: "run a former version of a pod until its manifest changes",
		Description: `
Without --to the version comes back that was ready last, beside the one in the
manifest and the one that it went back to before: monopod history lists them. It
comes back as after an update that failed: with the images that it ran, by digest,
and in place if it can. It is prepared beside what runs, which stops only once all
is there that the former version needs; monopod ps says for what it waits. What the
manifest gives is not tried again, over restarts of the agent and reboots, until the
manifest changes, be it by an annotation. The commands ps, diff and history say when
and why.

It is refused at once if a ConfigMap or Secret is gone that the former version needs,
and while the pod or the node is held: monopod release ends that. It does not wait
for the update window, nor for the lock of the workload. As soon as it is on disk it
happens, whatever becomes of the agent; the command does not wait for it.

Exit codes: 0; 1: it was refused, or there is no earlier version; 2: wrong flags; 3:
the agent does not run.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Destination: &to, Usage: "the version whose `HASH` begins so"},
			&cli.StringFlag{Name: "reason", Destination: &reason, Usage: "the `TEXT` that says why"},
			command.NamespaceFlag(&o.Choice.Namespace),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return command.UsageError("roll back which pod? As in `monopod rollback web`")
			}
			o.Choice.Names, o.Out = c.Args().Slice(), c.App.Writer
			o.Query = query("to", to, "reason", reason)
			return command.Down(client.Rollback(c.Context, o))
		},
	}
}
