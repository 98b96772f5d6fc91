package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/print"
)

func historyCommand() *cli.Command {
	var o Options
	return &cli.Command{
		Name: "history", ArgsUsage: "POD", Usage: "list the versions of a pod that were ready, to which it can go back",
		Description: `
The last three versions are remembered that became ready and stayed so for
updateStable: each with its manifest and the digests of the images that it ran.
Neither images nor objects are kept for them. Besides these the version is listed
that runs, and the one that the manifest gives. IS says which these are, and which
one was rolled back, when and why. What is remembered goes with its pod.

Exit codes: 0; 1: there is no such pod, or no other version of it; 2: wrong flags;
3: the agent does not run.`,
		Flags: []cli.Flag{
			command.OutputFlag(&o.Output, "json or yaml"),
			command.NamespaceFlag(&o.Choice.Namespace),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return command.UsageError("history of which pod? As in `monopod history web`")
			}
			o.on(c)
			return printHistory(c, &o)
		},
	}
}

// printHistory prints the versions of a pod. In the table, that there is no other one is an error.
func printHistory(c *cli.Context, o *Options) error {
	h, body, err := client.History(c.Context, o.Socket, c.Args().First(), o.Choice.Namespace)
	if err != nil {
		return noAgent(err)
	}
	if o.Output != "" {
		return print.As(c.App.Writer, o.Output, json.RawMessage(body))
	}
	o.Now = cmp.Or(o.Now, time.Now())
	err = print.History(c.App.Writer, h, o.Format)
	if err != nil || len(h.Versions) > 1 {
		return err
	}
	return fmt.Errorf("pod %s has no earlier version that was ready, as far as this agent remembers", h.Pod)
}

func rollbackCommand() *cli.Command {
	var o client.RollbackOptions
	return &cli.Command{
		Name: "rollback", ArgsUsage: "POD", Usage: "run a former version of a pod until its manifest changes",
		Description: `
Without --to the version comes back that was ready last, beside the one in the
manifest and the one that it went back to before: monopod history lists them. It
comes back as after an update that failed: with the images that it ran, by digest,
and in place if it can. It is prepared beside what runs, which stops only once all
is there that the former version needs; monopod ps says for what it waits. What the
manifest gives is not tried again, over restarts of the agent and reboots, until the
manifest changes, be it by an annotation. When it was asked for and why is said by
ps, diff and history.

It is refused at once if a ConfigMap or Secret is gone that the former version needs,
and while the pod or the node is held: monopod release ends that. It does not wait
for the update window, nor for the lock of the workload. As soon as it is on disk it
happens, whatever becomes of the agent; the command does not wait for it.

Exit codes: 0; 1: it was refused, or there is no earlier version; 2: wrong flags; 3:
the agent does not run.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Destination: &o.To, Usage: "the version whose `HASH` begins so"},
			&cli.StringFlag{Name: "reason", Destination: &o.Reason, Usage: "the `TEXT` that says why"},
			command.NamespaceFlag(&o.Namespace),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			switch c.NArg() {
			case 0:
				return command.UsageError("roll back which pod? As in `monopod rollback web`")
			case 1:
			default:
				return command.UsageError("one pod is rolled back at a time; --to HASH names a version, as in `monopod rollback web --to 3f2a`")
			}
			o.Name, o.Out = c.Args().First(), c.App.Writer
			return noAgent(client.Rollback(c.Context, o))
		},
	}
}

// noAgent makes an exit code of an error that says that no agent runs.
func noAgent(err error) error {
	if errors.Is(err, client.ErrDown) {
		return cli.Exit(err, exitDown)
	}
	return err
}
