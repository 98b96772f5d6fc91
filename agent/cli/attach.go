package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/terminal"
	"monopod/agent/print"
	"monopod/agent/stream"
	"monopod/cri"
	"monopod/manifests/defaults"
)

// AttachOptions is the container to whose streams Attach connects this process' streams.
type AttachOptions struct {
	client.Source
	Endpoint  string // as for ExecOptions
	Pod       string
	Namespace string
	Container string
	Input     bool // pass input on
	Terminal  bool // be its terminal
	Quiet     bool // print only errors

	// prepare requests the URL from the runtime; nil: askAttach.
	prepare func(ctx context.Context, endpoint string, request *rt.AttachRequest) (url string, err error)
}

// endWait is how long a runtime may take to know that a container has ended after it has closed
// its streams; endLook is how often it is asked.
const (
	endWait = 3 * time.Second
	endLook = 50 * time.Millisecond
)

// attachment is a container to attach to, as in its manifest.
type attachment struct {
	o        AttachOptions
	target   *target
	id       string
	endpoint string
	spec     *v1.Container
}

// Attach finds the container, and notes which options it does not support.
func Attach(ctx context.Context, o AttachOptions, notes io.Writer) (*attachment, error) {
	t, err := findTarget(ctx, o.Source, o.Pod, o.Namespace, o.Container)
	if err != nil {
		return nil, err
	}
	id, err := t.runningID()
	if err != nil {
		return nil, err
	}
	a := &attachment{o: o, target: t, id: id, spec: specOf(t.pod, t.container)}
	if o.Input && !a.spec.Stdin {
		return nil, fmt.Errorf("%s has no standard input: its manifest lacks stdin: true", t.subject())
	}
	if o.Terminal && !a.spec.TTY {
		fmt.Fprintf(notes, "monopod: unable to use a TTY: %s did not allocate one (its manifest lacks tty: true)\n", t.subject())
	}
	a.endpoint, err = t.runtimeAt(ctx, o.Endpoint)
	return a, err
}

// specOf returns a container of a pod by its name, which exists.
func specOf(p *v1.Pod, name string) *v1.Container {
	all := slices.Concat(p.Spec.Containers, p.Spec.InitContainers)
	k := slices.IndexFunc(all, func(c v1.Container) bool { return c.Name == name })
	return &all[k]
}

// run connects the streams with the container until that ends.
func (a *attachment) run(ctx context.Context, s stream.Streams) (int, error) {
	prepare := a.o.prepare
	if prepare == nil {
		prepare = askAttach
	}
	s.TTY = a.spec.TTY // the runtime has no other choice
	url, err := prepare(ctx, a.endpoint, &rt.AttachRequest{ContainerId: a.id, Stdin: s.In != nil, Stdout: true, Stderr: !s.TTY, Tty: s.TTY})
	if err != nil {
		return 0, a.target.refused(a.o.Endpoint, err)
	}
	code, err := stream.Run(ctx, url, s)
	return code, a.unlessEnded(ctx, err)
}

// unlessEnded returns err, or nil if that is the runtime's and the container has ended: CRI-O fails
// if some of the input came too late for it.
func (a *attachment) unlessEnded(ctx context.Context, err error) error {
	if failed := (*stream.StartError)(nil); !errors.As(err, &failed) || !hasEnded(ctx, a.endpoint, a.id) {
		return err
	}
	return nil
}

// hasEnded asks the runtime until the container has ended, or endWait is over.
func hasEnded(ctx context.Context, endpoint, id string) (ended bool) {
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	_ = withRuntime(ctx, endpoint, func(ctx context.Context, c *cri.Client) error {
		for {
			s, err := c.ContainerStatus(ctx, id)
			if ended = cri.NotFound(err) || s.GetState() == rt.ContainerState_CONTAINER_EXITED; ended || err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(endLook):
			}
		}
	})
	return ended
}

// resumption returns how to attach again; "": nothing.
func (a *attachment) resumption() string {
	if a.o.Quiet || !a.o.Input || !a.spec.TTY || defaults.RestartPolicyOf(a.target.pod, a.spec) != v1.RestartPolicyAlways {
		return ""
	}
	return fmt.Sprintf("Session ended, resume using 'monopod attach %s -c %s -i -t' command when the pod is running", print.ShortName(a.target.pod), a.target.container)
}

// askAttach requests the URL from the runtime at the endpoint, or at the one that exists.
func askAttach(ctx context.Context, endpoint string, request *rt.AttachRequest) (url string, err error) {
	err = withRuntime(ctx, endpoint, func(ctx context.Context, c *cri.Client) error {
		url, err = c.Attach(ctx, request)
		return err
	})
	return url, err
}

func attachCommand() *cli.Command {
	var o AttachOptions
	return &cli.Command{
		Name: "attach", ArgsUsage: "POD[/CONTAINER]", Usage: "connect to what a container runs already",
		Description: `
What the container prints from now on is shown. With -i its standard input is
this one's: the manifest must say stdin: true. With -t its terminal is this one:
the manifest must say tty: true. It is the runtime that is asked, at a loopback
address: this needs root, and works while the agent does not run.
Without -c it is the container that the annotation
kubectl.kubernetes.io/default-container names, else the first one.

Ctrl-C and Ctrl-D reach what runs there if this is its terminal, and may end
it; else monopod ends, and the container runs on. "monopod exec -it" is a shell
of its own, "monopod logs -f" only reads.

The exit code is 0 once the container has ended or let go, however it ended;
1: the pod is not known, the container does not run or has no standard input, or
the runtime did not do it; 128 and its number: a signal ended monopod.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stdin", Aliases: []string{"i"}, Destination: &o.Input, Usage: "pass standard input on"},
			&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Destination: &o.Terminal, Usage: "be the container's terminal"},
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Destination: &o.Container,
				Usage: "the `NAME` of the container"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Destination: &o.Quiet, Usage: "print only what comes from the container"},
			command.NamespaceFlag(&o.Namespace),
			command.EndpointFlag(&o.Endpoint, " (default: the agent's, else containerd's or CRI-O's)"),
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return command.UsageError("attach to which pod? As in `monopod attach -it web`")
			}
			o.Pod = c.Args().First()
			return runAttach(c, o)
		},
	}
}

// runAttach connects the container with this process' own streams.
func runAttach(c *cli.Context, o AttachOptions) error {
	a, err := Attach(c.Context, o, c.App.ErrWriter)
	if err != nil {
		return err
	}
	typed := terminal.Is(c.App.Reader)
	if o.Terminal && o.Input && !typed {
		fmt.Fprintln(c.App.ErrWriter, "monopod: unable to use a TTY: standard input is no terminal")
	}
	if !o.Quiet {
		fmt.Fprintln(c.App.ErrWriter, "If you don't see a command prompt, try pressing enter.")
	}
	w := wants{input: o.Input, tty: a.spec.TTY && o.Input && typed, redraw: true}
	if err := onConsole(c, w, a.run); err != nil {
		return err
	}
	if text := a.resumption(); text != "" && w.tty {
		fmt.Fprintln(c.App.Writer, text)
	}
	return nil
}
