package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/stream"
	"monopod/cri"
	"monopod/manifests/shell"
)

// ExecOptions is what Exec runs, and where.
type ExecOptions struct {
	client.Source
	Endpoint  string // of the runtime; "": the agent's, or the first that exists
	Pod       string // as for FindContainer
	Namespace string
	Container string // "": see client.ContainerOf
	Command   []string
	Streams   stream.Streams

	// prepare requests the command's URL from the runtime; nil: askRuntime.
	prepare func(ctx context.Context, endpoint string, request *rt.ExecRequest) (url string, err error)
}

// Exec runs a command in a container of a pod and returns its exit code. Its request goes to the
// runtime itself, so that it works without an agent too. Errors may be a *stream.StartError.
func Exec(ctx context.Context, o ExecOptions) (code int, err error) {
	t, err := findTarget(ctx, o.Source, o.Pod, o.Namespace, o.Container)
	if err != nil {
		return 0, err
	}
	id, err := t.runningID()
	if err != nil {
		return 0, err
	}
	endpoint, err := t.runtimeAt(ctx, o.Endpoint)
	if err != nil {
		return 0, err
	}
	prepare := o.prepare
	if prepare == nil {
		prepare = askRuntime
	}
	s := o.Streams
	url, err := prepare(ctx, endpoint, &rt.ExecRequest{ContainerId: id, Cmd: o.Command, Tty: s.TTY, Stdin: s.In != nil, Stdout: true, Stderr: !s.TTY})
	if err != nil {
		return 0, t.refused(o.Endpoint, err)
	}
	code, err = stream.Run(ctx, url, s)
	if start := (*stream.StartError)(nil); errors.As(err, &start) {
		err = fmt.Errorf("%s: cannot run %q: %w", t.subject(), o.Command[0], err)
	}
	return code, err
}

// askRuntime requests the URL from the runtime at the endpoint, or at the one that exists.
func askRuntime(ctx context.Context, endpoint string, request *rt.ExecRequest) (url string, err error) {
	err = withRuntime(ctx, endpoint, func(ctx context.Context, c *cri.Client) error {
		url, err = c.Exec(ctx, request)
		return err
	})
	return url, err
}

func execCommand() *cli.Command {
	var o ExecOptions
	return &cli.Command{
		Name: "exec", ArgsUsage: "POD[/CONTAINER] -- COMMAND ...", Usage: "run a command in a container",
		Description: `
The command's standard input is empty unless -i is given; -t gives it a
terminal, of this one's size. It is run by the runtime itself, which is asked
at a loopback address: this needs root, and works while the agent does not run.
Without -c it runs in the container that the annotation
kubectl.kubernetes.io/default-container names, else in the first one.

Ctrl-C reaches the command with -it; else monopod ends and the command runs
on until it finds its input or output closed.

The exit code is the command's own. 127: there is no such command in the
container; 126: it cannot be executed; 1: the pod is not known, the container
does not run, or the runtime did not do it; 128 and its number: a signal ended
monopod. CRI-O has no 126 and 127, but what runc or crun ends with then.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stdin", Aliases: []string{"i"}, Usage: "pass standard input on"},
			&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Usage: "give the command a terminal"},
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Destination: &o.Container,
				Usage: "the `NAME` of the container"},
			command.NamespaceFlag(&o.Namespace),
			command.EndpointFlag(&o.Endpoint, " (default: the agent's, else containerd's or CRI-O's)"),
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.NArg() == 0 || command.Dash(c) == 0:
				return command.UsageError("exec in which pod? As in `monopod exec web -- ls /`")
			case command.Dash(c) != 1 || c.NArg() < 2:
				return command.UsageError("the command goes behind --, as in `monopod exec %s -- ls /`", shell.Word(c.Args().First()))
			}
			o.Pod, o.Command = c.Args().First(), c.Args().Slice()[1:]
			return runExec(c, o)
		},
	}
}

// runExec connects the command with this process' own streams.
func runExec(c *cli.Context, o ExecOptions) error {
	return onConsole(c, wants{input: c.Bool("stdin"), tty: c.Bool("tty")}, func(ctx context.Context, s stream.Streams) (int, error) {
		o.Streams = s
		return Exec(ctx, o)
	})
}
