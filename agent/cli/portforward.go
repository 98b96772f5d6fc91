package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/forward"
	"monopod/agent/cli/terminal"
	"monopod/agent/print"
	"monopod/cri"
)

// ForwardOptions is which ports of which pod PortForward makes ports of this machine.
type ForwardOptions struct {
	client.Source
	Endpoint  string // as for ExecOptions
	Pod       string // as for client.FindPod
	Namespace string
	Ports     []string // as for forward.ParsePort
	Addresses []string
	Follow    bool
	Out, Err  io.Writer
}

// labelUID is the label that identifies the sandboxes of a pod, as a kubelet sets it.
const labelUID = "io.kubernetes.pod.uid"

// PortForward passes connections on until ctx ends, which is its error, or the pod is gone. Its
// requests go to the runtime itself, so that it works without an agent too.
func PortForward(ctx context.Context, o ForwardOptions) error {
	t, err := o.find(ctx)
	if err != nil {
		return err
	}
	var ports []forward.Port
	for _, text := range o.Ports {
		p, err := forward.ParsePort(text, func(name string) (uint16, error) { return portOf(t, name) })
		if err != nil {
			return err
		}
		ports = append(ports, p)
	}
	endpoint, err := t.runtimeAt(ctx, o.Endpoint)
	if err != nil {
		return err
	}
	runtime, err := dialRuntime(endpoint)
	if err != nil {
		return err
	}
	defer runtime.Close()
	o.Pod, o.Namespace = t.pod.Namespace+"/"+t.pod.Name, "" // also if another pod of that name appears meanwhile
	return forward.Run(ctx, forward.Options{
		Subject: t.podName(), Ports: ports, Addresses: o.Addresses, Follow: o.Follow, Out: o.Out, Err: o.Err,
		Find: func(ctx context.Context) (string, error) { return o.sandbox(ctx, runtime) },
		Runs: func(ctx context.Context, id string) (bool, error) { return isReady(ctx, runtime, id) },
		URL:  runtime.PortForward,
	})
}

// find finds the pod, without a container.
func (o *ForwardOptions) find(ctx context.Context) (*target, error) {
	k, err := o.Source.Pods(ctx)
	if err != nil {
		return nil, err
	}
	p, err := client.FindPod(k.Pods, o.Pod, o.Namespace)
	if err != nil {
		return nil, err
	}
	return &target{pod: p, from: o.Source, known: k}, nil
}

// portOf returns the pod's port of a name.
func portOf(t *target, name string) (uint16, error) {
	for _, c := range slices.Concat(t.pod.Spec.Containers, t.pod.Spec.InitContainers) {
		for _, p := range c.Ports {
			if p.Name == name && cmp.Or(p.Protocol, v1.ProtocolTCP) == v1.ProtocolTCP {
				return uint16(p.ContainerPort), nil
			}
		}
	}
	return 0, fmt.Errorf("%s has no TCP port %q", t.podName(), name)
}

// sandbox returns the pod's ready sandbox. Its error is why there is none.
func (o *ForwardOptions) sandbox(ctx context.Context, runtime *cri.Client) (string, error) {
	t, err := o.find(ctx)
	if err != nil {
		return "", err
	}
	if phase := t.pod.Status.Phase; phase != v1.PodRunning {
		return "", fmt.Errorf("unable to forward port because %s is not running. Current status=%s", t.podName(), print.OneLine(string(phase)))
	}
	all, err := runtime.Sandboxes(ctx, map[string]string{labelUID: string(t.pod.UID)})
	if err != nil {
		return "", t.refused(o.Endpoint, err)
	}
	ready := slices.DeleteFunc(all, func(s *rt.PodSandbox) bool { return s.State != rt.PodSandboxState_SANDBOX_READY })
	if len(ready) == 0 {
		return "", fmt.Errorf("unable to forward port because %s is not running: the runtime has no sandbox of it", t.podName())
	}
	latest := slices.MaxFunc(ready, func(a, b *rt.PodSandbox) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return latest.Id, nil
}

// isReady reports whether a sandbox exists and is ready. An error means that it is not known.
func isReady(ctx context.Context, runtime *cri.Client, id string) (bool, error) {
	s, err := runtime.SandboxStatus(ctx, id)
	if cri.NotFound(err) {
		return false, nil
	}
	return s.GetState() == rt.PodSandboxState_SANDBOX_READY, err
}

func portForwardCommand() *cli.Command {
	var o ForwardOptions
	return &cli.Command{
		Name: "port-forward", ArgsUsage: "POD [LOCAL:]REMOTE ...", Usage: "reach ports of a pod at ports of this machine",
		Description: `
Each connection to the port LOCAL of this machine, without it to the one of the
same number, is passed on to the port REMOTE of the pod, there to localhost.
":80" takes any port that is free; a REMOTE may be the name that a container
gives a port. It is TCP only, until Ctrl-C.

Only this machine can connect, but each user of it: --address names other
addresses. It is the runtime that passes a connection on, and is asked at a
loopback address: this needs root, and works while the agent does not run.
containerd and CRI-O end a connection one second after one of its sides has
ended: that this side has is passed on once nothing came for a second.

Without --follow the command ends once the pod is stopped or replaced. With it
connections go to the pod that comes in its place; those that were open end.

The exit code is 0 after Ctrl-C; 1: the pod is not known, does not run or is
gone, or no port can be listened on; 128 and its number: another signal.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "address", Value: cli.NewStringSlice("localhost"),
				Usage: "listen on these `ADDRESSES`, IPs or localhost, with commas"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Destination: &o.Follow, Usage: "go on with the pod that replaces it"},
			command.NamespaceFlag(&o.Namespace),
			command.EndpointFlag(&o.Endpoint, " (default: the agent's, else containerd's or CRI-O's)"),
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() < 2 {
				return command.UsageError("forward which pod's ports? As in `monopod port-forward web 8080:80`")
			}
			o.Pod, o.Ports, o.Addresses = c.Args().First(), c.Args().Slice()[1:], c.StringSlice("address")
			for _, text := range o.Ports {
				if _, err := forward.ParsePort(text, func(string) (uint16, error) { return 1, nil }); err != nil {
					return command.UsageError("%v", err)
				}
			}
			if err := forward.CheckAddresses(o.Addresses); err != nil {
				return command.UsageError("--address: %v", err)
			}
			o.Out, o.Err = c.App.Writer, c.App.ErrWriter
			return runPortForward(c.Context, o)
		},
	}
}

// runPortForward ends with a signal's exit code, and with 0 for Ctrl-C.
func runPortForward(ctx context.Context, o ForwardOptions) error {
	ctx, stop := terminal.UntilSignal(context.WithoutCancel(ctx))
	defer stop()
	err := PortForward(ctx, o)
	if signaled := (*terminal.Interrupted)(nil); errors.As(context.Cause(ctx), &signaled) {
		if signaled.Signal == syscall.SIGINT {
			return nil
		}
		err = signaled
	}
	return ended(0, err)
}
