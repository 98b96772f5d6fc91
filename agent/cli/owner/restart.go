package owner

import (
	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
)

// Restart is the command restart.
func Restart() *cli.Command {
	var o client.Request
	return &cli.Command{
		Name: "restart", ArgsUsage: "POD[/CONTAINER] ...", Usage: "restart a container, or a whole pod",
		Description: `
A container is stopped, with its preStop hook and its grace, and started again
at once, even if it waits after crashes; these are forgotten. A pod without a
container's name is replaced as a whole, with a new sandbox and its init
containers run again; its uid and its volumes stay. A pod that has ended is not
run again.

The command waits until all of it runs again; it need not be ready. As soon as
the agent has recorded the request the restart happens, whatever becomes of the
agent. While the runtime does not answer nothing can be restarted, and the
command says so.

Exit codes: 0; 1: a restart was refused or given up; 2: wrong flags; 3: the
agent does not run; 124: --timeout was over.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "no-wait", Destination: &o.NoWait, Usage: "return as soon as it is sure to happen"},
			&cli.DurationFlag{Name: "timeout", Destination: &o.Timeout,
				Usage: "the longest `TIME` to wait for all of it, such as 90s; 0: no limit. The exit code is 124 then"},
			command.NamespaceFlag(&o.Choice.Namespace),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.NArg() == 0:
				return command.UsageError("restart what? As in `monopod restart web` or `monopod restart web/nginx`")
			case o.Timeout < 0:
				return command.UsageError("--timeout %s: it must not be negative", o.Timeout)
			}
			o.Choice.Names, o.Out, o.Err = c.Args().Slice(), c.App.Writer, c.App.ErrWriter
			return command.Waited(c.Context, client.Restart(c.Context, o))
		},
	}
}
