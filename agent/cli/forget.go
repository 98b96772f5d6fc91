package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
)

// ForgetOptions says which pods Forget lets go.
type ForgetOptions struct {
	Socket    string
	Names     []string // see FindPod
	Namespace string
	Out       io.Writer
}

// askForgetTimeout is longer than the agent takes to answer that it cannot.
const askForgetTimeout = 25 * time.Second

// Forget accepts that pods are gone that no manifest gives any more, one after
// the other. They are removed from then on, with their grace, which it does not
// wait for. Where no agent runs the error is an ErrDown.
func Forget(ctx context.Context, o ForgetOptions) error {
	var list v1.PodList
	if err := client.GetJSON(ctx, o.Socket, "/pods", &list); client.NobodyThere(err) {
		return fmt.Errorf("%w: %w", client.ErrDown, err)
	} else if err != nil {
		return err
	}
	var pods []*v1.Pod
	for _, name := range o.Names { // all names first: if one is wrong, nothing is forgotten
		p, err := client.FindPod(list.Items, name, o.Namespace)
		if err != nil {
			return err
		}
		pods = append(pods, p)
	}
	for _, p := range pods {
		if _, err := postWithin(ctx, askForgetTimeout, o.Socket, "/forget/"+p.Namespace+"/"+p.Name); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(o.Out, "pod %s/%s is forgotten and is being removed\n", p.Namespace, print.ShortName(p)); err != nil {
			return err
		}
	}
	return nil
}

func forgetCommand() *command {
	var o ForgetOptions
	return &command{
		name: "forget", args: "POD ...", usage: "accept that pods are gone whose manifests cannot be read",
		about: `
A pod keeps running by its last good version while its manifest is missing without proof
that somebody removed it, or cannot be read: the disk of the manifests is not mounted, their
folder is missing or was made again, the file does not parse. This accepts the removal by
hand: the pod is stopped with its preStop hooks and its grace and removed, with its volumes
and logs, and no restart of the agent brings it back. A manifest that gives it again starts
it again, as a new pod.

A pod whose manifest is there and valid is refused: remove the file instead. It is not waited
until all of the pod is gone; monopod wait POD --for gone does that.

Exit codes: 0; 1: a pod was refused, or there is none of that name; 2: wrong flags; 3: the
agent does not run.`,
		flags: func(f *pflag.FlagSet) {
			namespaceFlag(f, &o.Namespace)
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *Call) error {
			if len(c.args) == 0 {
				return exit(exitUsage, "forget which pod? As in `monopod forget web`")
			}
			o.Names, o.Out = c.args, c.Out
			err := Forget(ctx, o)
			if errors.Is(err, client.ErrDown) {
				return exit(exitDown, "%v", err)
			}
			return err
		},
	}
}
