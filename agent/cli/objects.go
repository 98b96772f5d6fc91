package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/command"
	"monopod/agent/print"
)

// Objects prints the ConfigMaps and Secrets of the manifests, and the pods that refer to them.
// Their values are not known here. If no agent runs it prints the last report, and returns
// ErrDown.
func Objects(ctx context.Context, w io.Writer, o Options) error {
	o.Now = cmp.Or(o.Now, time.Now())
	k, err := o.open(ctx)
	if err != nil {
		return err
	}
	none := "No ConfigMaps and Secrets."
	if o.Choice.Namespace != "" {
		none = fmt.Sprintf("No ConfigMaps and Secrets in namespace %s.", o.Choice.Namespace)
	}
	node := ""
	if len(k.Pods) > 0 {
		node = k.Pods[0].Spec.NodeName
	}
	all := print.ObjectsOf(k.Manifests, o.Choice.Namespace, node)
	if err := print.Objects(w, o.notes(), all, none, o.Format); err != nil {
		return err
	}
	return k.DownError()
}

func objectsCommand() *cli.Command {
	var o Options
	return &cli.Command{
		Name: "objects", Usage: "list the ConfigMaps and Secrets, and the pods that use them",
		Description: `
They are those of the manifest files. Their values are never shown; a pod has
them in its volumes and variables. One that is superseded is given by another
file, too; one that is leaving has lost its file, and goes once that is certain.

Where the agent does not run, the command says so on standard error and shows
what it reported last; the exit code is 3.`,
		Flags: []cli.Flag{
			command.OutputFlag(&o.Output, "name", "json", "yaml"),
			command.NamespaceFlag(&o.Choice.Namespace),
			command.AllNamespacesFlag(&o.AllNamespaces),
			&cli.BoolFlag{Name: "no-headers", Destination: &o.NoHeaders, Usage: "leave the line with the columns' names out"},
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
		},
		Action: func(c *cli.Context) error {
			if err := command.NoArgs(c, ""); err != nil {
				return err
			}
			o.on(c)
			return downCode(Objects(c.Context, c.App.Writer, o))
		},
	}
}
