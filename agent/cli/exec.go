package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/print"
	"monopod/agent/cli/terminal"
	"monopod/agent/status"
	"monopod/agent/stream"
	"monopod/cri"
	"monopod/manifests/shell"
)

// ExecOptions says what Exec runs, and where.
type ExecOptions struct {
	client.Source
	Endpoint  string // of the runtime; "": the agent's, or the first that exists
	Pod       string // as for FindContainer
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
	k, err := o.Source.Pods(ctx)
	if err != nil {
		return 0, err
	}
	p, named, err := client.FindContainer(k.Pods, o.Pod, o.Namespace)
	if err != nil {
		return 0, err
	}
	if named != "" && o.Container != "" {
		return 0, command.UsageError("%q names container %s: name containers once", o.Pod, named)
	}
	container, err := client.ContainerOf(p, cmp.Or(named, o.Container))
	if err != nil {
		return 0, err
	}
	id, err := runningID(p, container)
	if err != nil {
		return 0, err
	}
	endpoint := cmp.Or(o.Endpoint, k.Runtime.Endpoint)
	if endpoint == "" && !k.Down() {
		var r status.Runtime
		if err := client.GetJSON(ctx, o.Socket, "/runtime", &r); err != nil {
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
	subject := fmt.Sprintf("container %s of pod %s/%s", container, p.Namespace, print.ShortName(p))
	switch {
	case cri.NotFound(err):
		return 0, fmt.Errorf("%s is gone: %w", subject, err)
	case err != nil && o.Endpoint != "":
		return 0, fmt.Errorf("%s: %w", subject, &client.FlagError{Flag: "runtime-endpoint", Err: err})
	case err != nil:
		return 0, fmt.Errorf("%s: %w", subject, err)
	}
	code, err = stream.Run(ctx, url, s)
	if start := (*stream.StartError)(nil); errors.As(err, &start) {
		err = fmt.Errorf("%s: cannot run %q: %w", subject, o.Command[0], err)
	}
	return code, err
}

// runningID returns the runtime's id of a container that runs, or says why it does not.
func runningID(p *v1.Pod, name string) (string, error) {
	s, ok := print.StatusOf(slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses), name)
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
	return "", fmt.Errorf("container %s of pod %s/%s does not run: %s", name, p.Namespace, print.ShortName(p), print.OneLine(why))
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

Ctrl-C reaches the command with -t; without, monopod ends and the command runs
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
	input, tty := c.Bool("stdin"), c.Bool("tty")
	signal.Ignore(syscall.SIGPIPE) // a closed output is an error, after which the terminal is restored
	ctx, stop := terminal.UntilSignal(context.WithoutCancel(c.Context))
	defer stop()
	o.Streams = stream.Streams{Out: c.App.Writer, Err: c.App.ErrWriter, TTY: tty}
	if input {
		o.Streams.In = c.App.Reader
	}
	keys, typed := c.App.Reader.(*os.File)
	typed = typed && terminal.Is(keys)
	if tty && input && !typed {
		fmt.Fprintln(c.App.ErrWriter, "monopod: standard input is no terminal: the command gets none either")
		tty, o.Streams.TTY = false, false
	}
	restore := func() {}
	if tty {
		screen, _ := c.App.Writer.(*os.File)
		if typed && !terminal.Is(screen) {
			screen = keys
		}
		sizes, unwatch := terminal.Sizes(screen)
		defer unwatch()
		o.Streams.Sizes = sizes
		if input {
			var err error
			if restore, err = terminal.Raw(keys); err != nil {
				return err
			}
			defer restore()
		}
	}
	code, err := Exec(ctx, o)
	restore()
	if signaled := (*terminal.Interrupted)(nil); errors.As(context.Cause(ctx), &signaled) {
		err = signaled // also if it interrupted a call
	}
	return execEnd(code, err)
}

// execEnd makes an exit code of how a command ended.
func execEnd(code int, err error) error {
	var signaled *terminal.Interrupted
	var start *stream.StartError
	switch {
	case err == nil && code == 0:
		return nil
	case err == nil:
		return cli.Exit("", code)
	case errors.As(err, &signaled):
		return cli.Exit("", signaled.ExitCode())
	case errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe):
		return cli.Exit("", 128+int(syscall.SIGPIPE))
	case errors.As(err, &start) && start.Code != 0:
		return cli.Exit(err, start.Code)
	}
	return err
}
