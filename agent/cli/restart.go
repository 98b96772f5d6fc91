package cli

import (
	"context"

	"github.com/spf13/pflag"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
)

func restartCommand() *command.Command {
	var o client.RestartOptions
	return &command.Command{
		Name: "restart", Args: "POD[/CONTAINER] ...", Usage: "restart a container, or a whole pod",
		About: `
A container is stopped, with its preStop hook and its grace, and started again at once, even
if it waits after crashes; these are forgotten. A pod without a container's name is replaced
as a whole, with a new sandbox and its init containers run again; its uid and its volumes
stay. A pod that has ended is not run again.

It is waited until all of it runs again; it need not be ready. From the moment on at which
the agent has it written down it happens, whatever becomes of the agent.`,
		Flags: func(f *pflag.FlagSet) {
			f.BoolVar(&o.NoWait, "no-wait", false, "return as soon as it is sure to happen")
			f.DurationVar(&o.Timeout, "timeout", 0, "the longest `TIME` to wait for all of it, such as 90s; 0: no limit. The exit code is 124 then")
			command.NamespaceFlag(f, &o.Namespace)
			command.SocketFlag(f, &o.Socket)
		},
		Run: func(ctx context.Context, c *command.Call) error {
			switch {
			case len(c.Args) == 0:
				return command.UsageError("restart what? As in `monopod restart web` or `monopod restart web/nginx`")
			case o.Timeout < 0:
				return command.UsageError("--timeout %s: it is less than no time", o.Timeout)
			}
			o.Names, o.Out = c.Args, c.Out
			return waited(ctx, client.Restart(ctx, o))
		},
	}
}
