package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
)

// DescribeOptions is which pods Describe prints and how.
type DescribeOptions struct {
	Options
	Pods []string // as for FindPod; of Choice the namespace counts, too
}

// Describe prints everything that is known of pods, in the style of `kubectl describe pod`; as
// json or yaml the v1 Pod, or a PodList of several.
func Describe(ctx context.Context, w io.Writer, o DescribeOptions) error {
	o.Now = cmp.Or(o.Now, time.Now())
	k, err := o.open(ctx)
	if err != nil {
		return err
	}
	if isNode(o.Pods, k.Pods) {
		if err := describeNode(ctx, w, k, o); err != nil {
			return err
		}
		return k.DownError()
	}
	choice := client.Choice{Names: o.Pods, Namespace: o.Choice.Namespace}
	if k.Pods, err = choice.Of(k.Pods); err != nil {
		return err
	}
	if len(k.Pods) == 0 && o.Output == "" {
		fmt.Fprintln(o.notes(), cmp.Or(choice.None(), "No pods."))
	}
	if o.Output != "" {
		err = print.PodsAs(w, o.Output, k.Pods)
	} else {
		err = describe(ctx, w, k, o)
	}
	if err != nil {
		return err
	}
	return k.DownError()
}

func describe(ctx context.Context, w io.Writer, k *client.Known, o DescribeOptions) error {
	var out bytes.Buffer
	for i := range k.Pods {
		happened, err := k.Events(ctx, k.Pods[i].Namespace+"/"+k.Pods[i].Name)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteString("\n\n")
		}
		print.Describe(&out, &k.Pods[i], k.Manifests, happened, o.Format)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func describeCommand() *cli.Command {
	var o DescribeOptions
	return &cli.Command{
		Name: "describe", ArgsUsage: "[POD ...] | node", Usage: "show all of pods: containers, probes, volumes, problems, events; or of the node",
		Description: `
Without a POD it shows all. A POD is named as in its manifest, or by its
full name, with its namespace before it if that is not enough, as in
kube-system/web. Where the agent does not run, describe says so on standard
error and shows what it reported last; the exit code is 3.

Of the node it shows the conditions, such as pressure, what it has, what is
reserved of that and requested by pods, and how full its disks are. As json or
yaml it is the v1 Pod or Node.`,
		Flags: []cli.Flag{
			command.OutputFlag(&o.Output, "json", "yaml"),
			command.NamespaceFlag(&o.Choice.Namespace),
			command.AllNamespacesFlag(&o.AllNamespaces),
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
		},
		Action: func(c *cli.Context) error {
			o.Pods = c.Args().Slice()
			o.on(c)
			return downCode(Describe(c.Context, c.App.Writer, o))
		},
	}
}
