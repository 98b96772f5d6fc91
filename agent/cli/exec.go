package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/status"
	"monopod/agent/stream"
	"monopod/cri"
)

// ExecOptions says what Exec runs, and where.
type ExecOptions struct {
	Source
	Endpoint  string // of the runtime; "": the agent's, or whichever is there
	Pod       string // as for FindPod
	Namespace string
	Container string // "": see ContainerOf
	Command   []string
	Streams   stream.Streams

	// prepare asks the runtime for the command's URL; nil: askRuntime.
	prepare func(ctx context.Context, endpoint string, request *rt.ExecRequest) (url string, err error)
}

// Exec runs a command in a container of a pod and returns its exit code. It
// asks the runtime itself, so that it works without an agent too. Errors may be
// a *stream.StartError.
func Exec(ctx context.Context, o ExecOptions) (code int, err error) {
	k, err := o.Source.pods(ctx)
	if err != nil {
		return 0, err
	}
	p, err := FindPod(k.pods, o.Pod, o.Namespace)
	if err != nil {
		return 0, err
	}
	container, err := ContainerOf(p, o.Container)
	if err != nil {
		return 0, err
	}
	id, err := runningID(p, container)
	if err != nil {
		return 0, err
	}
	endpoint := o.Endpoint
	if endpoint == "" && k.seen.IsZero() {
		var r status.Runtime
		if err := getJSON(ctx, o.Socket, "/runtime", &r); err != nil {
			return 0, err
		}
		endpoint = r.Endpoint
	}
	prepare := o.prepare
	if prepare == nil {
		prepare = askRuntime
	}
	s := o.Streams
	url, err := prepare(ctx, endpoint, &rt.ExecRequest{ContainerId: id, Cmd: o.Command, Tty: s.TTY, Stdin: s.In != nil, Stdout: true, Stderr: !s.TTY})
	who := fmt.Sprintf("container %s of pod %s/%s", container, p.Namespace, shortName(p))
	switch {
	case cri.NotFound(err):
		return 0, fmt.Errorf("%s is gone: %w", who, err)
	case err != nil:
		return 0, fmt.Errorf("%s: %w", who, err)
	}
	code, err = stream.Run(ctx, url, s)
	if start := (*stream.StartError)(nil); errors.As(err, &start) {
		err = fmt.Errorf("%s: cannot run %q: %w", who, o.Command[0], err)
	}
	return code, err
}

// runningID returns the runtime's id of a container that runs, or says why it does not.
func runningID(p *v1.Pod, name string) (string, error) {
	s, ok := statusOf(slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses), name)
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
		why = joinWords(s.State.Waiting.Reason, s.State.Waiting.Message)
	} else if ok && s.State.Terminated != nil {
		why = joinWords(endWord(s.State.Terminated), endedWith(s.State.Terminated))
	}
	return "", fmt.Errorf("container %s of pod %s/%s does not run: %s", name, p.Namespace, shortName(p), oneLine(why))
}

// execTimeout bounds the question for the URL.
const execTimeout = 15 * time.Second

// askRuntime asks the runtime at the endpoint, or the one that is there.
func askRuntime(ctx context.Context, endpoint string, request *rt.ExecRequest) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	endpoints := cri.WellKnown()
	if endpoint != "" {
		endpoints = strings.Split(endpoint, " or ") // as cri.Client.Endpoint says it before it has connected
	}
	client, err := cri.Dial(endpoints...)
	if err != nil {
		return "", err
	}
	defer client.Close()
	return client.Exec(ctx, request)
}
