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
	"monopod/agent/cli/print"
)

// DescribeOptions says which pods Describe prints and how.
type DescribeOptions struct {
	Options
	Pods []string // as for FindPod; of Choice the namespace counts, too
}

// Describe prints all that is known of pods, in the manner of `kubectl describe
// pod`; as json or yaml the v1 Pod, or a PodList of several.
func Describe(ctx context.Context, w io.Writer, o DescribeOptions) error {
	o.Now = cmp.Or(o.Now, time.Now())
	k, err := o.open(ctx)
	if err != nil {
		return err
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
	if err == nil && k.Down() {
		return client.ErrDown
	}
	return err
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
		Name: "describe", ArgsUsage: "[POD ...]", Usage: "tell all about pods: containers, probes, volumes, problems, events",
		Description: `
Without a POD it tells of all. A POD is meant by its name in the manifest or
its full name, with its namespace before it if that is not enough, as in
kube-system/web. Where the agent does not run, this is said on standard error,
what it reported last is shown, and the exit code is 3.`,
		Flags: []cli.Flag{
			command.OutputFlag(&o.Output, "json or yaml: the v1 Pod"),
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
