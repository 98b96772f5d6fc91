package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/print"
)

// DescribeOptions says which pods Describe prints and how.
type DescribeOptions struct {
	Options
	Pods []string // as for FindPod
}

// Describe prints all that is known of pods, in the manner of `kubectl describe
// pod`; as json or yaml the v1 Pod, or a PodList of several.
func Describe(ctx context.Context, w io.Writer, o DescribeOptions) error {
	if err := print.CheckOutput(o.Output, "json", "yaml"); err != nil {
		return err
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	k, err := o.open(ctx)
	if err != nil {
		return err
	}
	if k.Pods, err = (client.Choice{Names: o.Pods}).Of(k.Pods); err != nil {
		return err
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

func describeCommand() *command.Command {
	var o DescribeOptions
	return &command.Command{
		Name: "describe", Args: "[POD ...]", Usage: "tell all about pods: containers, probes, volumes, problems, events",
		About: "Without a POD it tells of all. A POD is meant by its name in the manifest or its full name,\n" +
			"with its namespace before it if that is not enough, as in kube-system/web.\n" +
			"Where the agent does not run, this is said on standard error, what it reported last is\n" +
			"shown, and the exit code is 3.",
		Flags: func(f *pflag.FlagSet) {
			command.OutputFlag(f, &o.Output, "json or yaml: the v1 Pod")
			command.SourceFlags(f, &o.Source)
		},
		Run: func(ctx context.Context, c *command.Call) error {
			o.Pods = c.Args
			o.Color, o.Err = print.Colored(c.Out, os.Getenv), c.Err
			return downCode(Describe(ctx, c.Out, o))
		},
	}
}
