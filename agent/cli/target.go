package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
	"monopod/agent/status"
	"monopod/cri"
)

// target is a container that a command reaches through the runtime, which works without an agent
// too.
type target struct {
	pod       *v1.Pod
	container string

	from  client.Source
	known *client.Known
}

// findTarget finds the pod and its container by their names.
func findTarget(ctx context.Context, from client.Source, pod, namespace, container string) (*target, error) {
	k, err := from.Pods(ctx)
	if err != nil {
		return nil, err
	}
	p, named, err := client.FindContainer(k.Pods, pod, namespace)
	if err != nil {
		return nil, err
	}
	if named != "" && container != "" {
		return nil, command.UsageError("%q names container %s: name containers once", pod, named)
	}
	container, err = client.ContainerOf(p, cmp.Or(named, container))
	if err != nil {
		return nil, err
	}
	return &target{pod: p, container: container, from: from, known: k}, nil
}

// podName is the pod in words.
func (t *target) podName() string {
	return fmt.Sprintf("pod %s/%s", t.pod.Namespace, print.ShortName(t.pod))
}

// subject is the container in words; without a container, the pod.
func (t *target) subject() string {
	if t.container == "" {
		return t.podName()
	}
	return fmt.Sprintf("container %s of %s", t.container, t.podName())
}

// runningID returns the runtime's id of a running container, or why it does not run.
func (t *target) runningID() (string, error) {
	p := t.pod
	s, ok := print.StatusOf(slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses), t.container)
	_, id, _ := strings.Cut(s.ContainerID, "://")
	switch {
	case ok && id != "" && s.State.Running != nil:
		return id, nil
	case ok && id != "" && s.State.Waiting != nil && s.State.Waiting.Reason == "PodInitializing",
		ok && id != "" && s.State.Waiting != nil && s.State.Waiting.Reason == "ContainerCreating":
		return id, nil // its postStart hook runs, or it was just made: the runtime knows
	}
	why := cmp.Or(p.Status.Reason, string(p.Status.Phase), "nothing is known of it yet")
	if ok && s.State.Waiting != nil {
		why = print.JoinWords(s.State.Waiting.Reason, s.State.Waiting.Message)
	} else if ok && s.State.Terminated != nil {
		why = print.JoinWords(print.EndWord(s.State.Terminated), print.EndedWith(s.State.Terminated))
	}
	return "", fmt.Errorf("%s does not run: %s", t.subject(), print.OneLine(why))
}

// runtimeAt returns the runtime's endpoint: as given, or the agent's; "": not known.
func (t *target) runtimeAt(ctx context.Context, given string) (string, error) {
	endpoint := cmp.Or(given, t.known.Runtime.Endpoint)
	if endpoint != "" || t.known.Down() {
		return endpoint, nil
	}
	var r status.Runtime
	err := client.GetJSON(ctx, t.from.Socket, "/runtime", &r)
	return r.Endpoint, err
}

// refused returns why the runtime does not reach the container; given is the endpoint of the flag.
func (t *target) refused(given string, err error) error {
	switch {
	case cri.NotFound(err):
		return fmt.Errorf("%s is gone: %w", t.subject(), err)
	case given != "":
		return fmt.Errorf("%s: %w", t.subject(), &client.FlagError{Flag: "runtime-endpoint", Err: err})
	}
	return fmt.Errorf("%s: %w", t.subject(), err)
}

// askTimeout bounds a request to the runtime for a URL.
const askTimeout = 15 * time.Second

// dialRuntime returns a client of the runtime at the endpoint, or at the one that exists.
func dialRuntime(endpoint string) (*cri.Client, error) {
	endpoints := cri.WellKnown()
	if endpoint != "" {
		endpoints = strings.Split(endpoint, " or ") // the form of cri.Client.Endpoint before it has connected
	}
	return cri.Dial(endpoints...)
}

// withRuntime makes one request to the runtime.
func withRuntime(ctx context.Context, endpoint string, ask func(ctx context.Context, c *cri.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := dialRuntime(endpoint)
	if err != nil {
		return err
	}
	defer c.Close()
	return ask(ctx, c)
}
