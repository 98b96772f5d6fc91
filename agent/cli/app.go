// Package cli is the commands of monopod. A new one is a file here and a line in App: help,
// completion and the manual page follow. The requests of commands to the agent are in client,
// their output in print, the owner's commands in owner.
package cli

import (
	"github.com/urfave/cli/v2"

	"monopod/agent/cli/command"
	"monopod/agent/cli/owner"
)

// App is the command line as a table.
func App() *cli.App {
	return &cli.App{
		Name: "monopod", Version: Version().Version,
		Usage: "run Kubernetes static pods on one machine, with nothing behind it",
		Description: `
A folder of Pod manifests goes in; sandboxes and containers come out of a CRI
runtime such as containerd or CRI-O; status goes to JSON files and to a
read-only HTTP endpoint. There is no API server behind it, no database and no
cluster.

The other commands ask the agent, "monopod run", through its unix socket, which
is for root only. Flags may stand before or behind arguments; what follows -- is
not looked at.

Pods go by the name in their manifest (web), by the name that the runtime knows
(web-node1), or by either behind their namespace (kube-system/web). A name that
several pods have is refused, and the candidates are named.`,
		Commands: withExamples([]*cli.Command{
			{Name: "run", Usage: "keep the pods of a folder of manifests running", Flags: runFlags(), Action: run},
			onceCommand(),
			{
				Name: "validate", ArgsUsage: "FILE|DIR|- ...", Usage: "check manifests as the agent would",
				Flags: []cli.Flag{nodeNameFlag(), command.ConfigFlag()}, Action: validate,
			},
			diffCommand(),
			initCommand(),
			signCommand(),
			{
				Name: "config", Usage: "print what can be set, documented", Action: printConfig,
				Flags: []cli.Flag{&cli.BoolFlag{Name: "defaults",
					Usage: "print a file of settings with the default of each and what it means"}},
			},
			psCommand(),
			describeCommand(),
			eventsCommand(),
			topCommand(),
			logsCommand(),
			execCommand(),
			attachCommand(),
			portForwardCommand(),
			cpCommand(),
			waitCommand(),
			owner.Restart(),
			historyCommand(),
			owner.Rollback(),
			owner.Stop(),
			owner.Start(),
			owner.Hold(),
			owner.Release(),
			owner.Forget(),
			objectsCommand(),
			imagesCommand(),
			volumeCommand(),
			exportCommand(),
			adoptCommand(),
			doctorCommand(),
			supportCommand(),
			versionCommand(),
			command.Completion(),
			command.Man(),
			command.Help(),
			command.Complete(),
		}),
	}
}
