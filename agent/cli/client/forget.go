package client

import (
	"context"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"

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
	if err := GetJSON(ctx, o.Socket, "/pods", &list); notRunning(err) {
		return fmt.Errorf("%w: %w", ErrDown, err)
	} else if err != nil {
		return err
	}
	var pods []*v1.Pod
	for _, name := range o.Names { // all names first: if one is wrong, nothing is forgotten
		p, err := FindPod(list.Items, name, o.Namespace)
		if err != nil {
			return err
		}
		pods = append(pods, p)
	}
	for _, p := range pods {
		if _, err := post(ctx, askForgetTimeout, o.Socket, "/forget/"+p.Namespace+"/"+p.Name); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(o.Out, "pod %s/%s is forgotten and is being removed\n", p.Namespace, print.ShortName(p)); err != nil {
			return err
		}
	}
	return nil
}
