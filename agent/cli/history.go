package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
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
			command.OutputFlag(&o.Output, "json", "yaml"),
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

// printHistory prints the versions of a pod. For the table, it is an error if there is no other
// version.
func printHistory(c *cli.Context, o *Options) error {
	h, body, err := client.History(c.Context, o.Socket, c.Args().First(), o.Choice.Namespace)
	if err != nil {
		return command.Down(err)
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
