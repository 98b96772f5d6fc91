package cli

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/command"
	"monopod/agent/cli/cp"
	"monopod/agent/cli/terminal"
	"monopod/agent/print"
	"monopod/agent/stream"
	"monopod/manifests/shell"
)

func cpCommand() *cli.Command {
	var o ExecOptions
	var noPreserve bool
	return &cli.Command{
		Name: "cp", ArgsUsage: "[POD:]PATH [POD:]PATH", Usage: "copy files to and from a container",
		Description: `
One of the two is a place in a container. It must have tar, which is run there as
by "monopod exec": without -c in the container that the annotation
kubectl.kubernetes.io/default-container names, else in the first one.

A file gets the name that is given, or goes into the folder of that name. What is
in a folder of a container goes into the folder that is given; a folder of this
machine goes into the container's folder if that is there. A path of this machine
with a colon begins with ./ or /.

What comes from a container can lie nowhere but in the folder that is given: it
goes through no link, and links that lead out, devices and set-user-ID bits are
left out, as are owners and times. Names of one file stay one file. Holes stay
holes in what comes from a container, and in what goes to one that has GNU tar.
At most 16 GiB and 1000000 files are copied.

The exit code is 0 also if something was left out, which is said; 1: the pod is
not known, the container does not run or has no tar, or something could not be
copied; 128 and its number: a signal ended monopod.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Destination: &o.Container,
				Usage: "the `NAME` of the container"},
			&cli.BoolFlag{Name: "no-preserve", Destination: &noPreserve,
				Usage: "keep neither owners nor modes in the container"},
			command.NamespaceFlag(&o.Namespace),
			command.EndpointFlag(&o.Endpoint, " (default: the agent's, else containerd's or CRI-O's)"),
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return command.UsageError("copy what to where? As in `monopod cp web:/etc/hosts hosts`")
			}
			from, err := cp.ParsePlace(c.Args().Get(0))
			if err != nil {
				return command.UsageError("%v", err)
			}
			to, err := cp.ParsePlace(c.Args().Get(1))
			switch {
			case err != nil:
				return command.UsageError("%v", err)
			case from.Pod != "" && to.Pod != "":
				return command.UsageError("one of the two must be a file of this machine")
			case from.Pod == "" && to.Pod == "":
				return command.UsageError("one of the two must be a file of a pod, as in web:/etc/hosts")
			}
			o.Pod = from.Pod + to.Pod
			return runCopy(c, o, noPreserve, from, to)
		},
	}
}

// runCopy copies until a signal ends it.
func runCopy(c *cli.Context, o ExecOptions, noPreserve bool, from, to cp.Place) error {
	ctx, stop := terminal.UntilSignal(context.WithoutCancel(c.Context))
	defer stop()
	err := copyFiles(ctx, o, &cp.Copy{NoPreserve: noPreserve, Notes: c.App.ErrWriter}, from, to)
	if signaled := (*terminal.Interrupted)(nil); errors.As(context.Cause(ctx), &signaled) {
		return ended(0, signaled)
	}
	return err
}

// copyFiles copies by commands in the container.
func copyFiles(ctx context.Context, o ExecOptions, k *cp.Copy, from, to cp.Place) error {
	t, err := findTarget(ctx, o.Source, o.Pod, o.Namespace, o.Container)
	if err != nil {
		return err
	}
	k.Subject, k.Pod = t.subject(), shell.Word(t.pod.Namespace+"/"+print.ShortName(t.pod)+"/"+t.container)
	o.Pod, o.Namespace, o.Container = t.pod.Namespace+"/"+t.pod.Name, "", t.container
	k.Exec = func(ctx context.Context, command []string, s stream.Streams) (int, error) {
		o.Command, o.Streams = command, s
		return Exec(ctx, o)
	}
	if from.Pod != "" {
		return k.Down(ctx, from.Path, to.Path)
	}
	return k.Up(ctx, from.Path, to.Path)
}
