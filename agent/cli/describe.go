package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"monopod/agent/cli/client"
)

// DescribeOptions says which pods Describe prints and how.
type DescribeOptions struct {
	Options
	Pods []string // as for FindPod
}

// Describe prints all that is known of pods, in the manner of `kubectl describe
// pod`; as json or yaml the v1 Pod, or a PodList of several.
func Describe(ctx context.Context, w io.Writer, o DescribeOptions) error {
	if err := checkOutput(o.Output, "json", "yaml"); err != nil {
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
		err = v1Pods(w, o.Output, k.Pods)
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
		describePod(&out, &k.Pods[i], k.Manifests, happened, o.Format)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func describeCommand() *command {
	var o DescribeOptions
	return &command{
		name: "describe", args: "[POD ...]", usage: "tell all about pods: containers, probes, volumes, problems, events",
		about: "Without a POD it tells of all. A POD is meant by its name in the manifest or its full name,\n" +
			"with its namespace before it if that is not enough, as in kube-system/web.\n" +
			"Where the agent does not run, this is said on standard error, what it reported last is\n" +
			"shown, and the exit code is 3.",
		flags: func(f *pflag.FlagSet) {
			outputFlag(f, &o.Output, "json or yaml: the v1 Pod")
			sourceFlags(f, &o.Source)
		},
		run: func(ctx context.Context, c *Call) error {
			o.Pods = c.args
			o.Color, o.Err = Colored(c.Out, os.Getenv), c.Err
			return downCode(Describe(ctx, c.Out, o))
		},
	}
}
