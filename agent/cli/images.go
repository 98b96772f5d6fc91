package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
	"monopod/agent/status"
)

// imagesTimeout bounds the request for images, which the agent passes on to the runtime.
const imagesTimeout = 30 * time.Second

// Images prints the runtime's images, the pods that use them and which of them are to be removed.
func Images(ctx context.Context, w io.Writer, o Options) error {
	body, err := client.GetWithin(ctx, imagesTimeout, o.Socket, "/images")
	if err != nil {
		return err
	}
	if o.Output == "json" || o.Output == "yaml" {
		return print.As(w, o.Output, json.RawMessage(body))
	}
	var all status.Images
	if err := client.Decode(body, &all, o.Socket, "/images"); err != nil {
		return err
	}
	o.Now = cmp.Or(o.Now, time.Now())
	return print.Images(w, o.notes(), &all, o.Format)
}

const imagesAbout = `
Without a word it lists the images of the runtime, the pods that use them and
which are to be removed. What archives of the folder imageDir give is never
removed while the archive is there.

load imports an archive that docker save or skopeo copy has written, also
compressed with gzip or zstd, and - reads it from standard input. It asks the
runtime itself, so that the agent need not run. rm removes images that nothing
needs, with all their names. prune removes all images that no pod, no version
that a pod can be rolled back to, and no archive needs; --dry-run tells which.
pull pulls images, with the credentials of the node.

Exit codes: 0; 1: an image was refused, cannot be had, or there is none of that
name; 2: wrong flags; 3: the agent does not run.`

func imagesCommand() *cli.Command {
	var o Options
	var endpoint string
	return &cli.Command{
		Name: "images", ArgsUsage: "[load FILE|-] [rm IMAGE ...] [prune] [pull IMAGE ...]", Usage: "list, load, remove or pull images",
		Description: imagesAbout,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "with prune: tell what would be removed"},
			&cli.StringFlag{Name: "runtime-endpoint", EnvVars: command.Variables("runtime-endpoint"), Destination: &endpoint,
				Usage: "with load: the CRI socket, `unix:///path`, where no agent runs that knows it"},
			command.OutputFlag(&o.Output, "wide", "json", "yaml"),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			o.on(c)
			what, names := c.Args().First(), c.Args().Tail()
			one := imageVerbs[what]
			switch {
			case c.Bool("dry-run") && what != "prune":
				return command.UsageError("--dry-run goes with prune")
			case what == "":
				return Images(c.Context, c.App.Writer, o)
			case what == "prune" && len(names) > 0:
				return command.UsageError("prune takes no images, got %q: rm removes one", names[0])
			case what == "prune":
				return command.Down(pruneImages(c.Context, c.App.Writer, o.Socket, c.Bool("dry-run")))
			case what == "load" && len(names) != 1:
				return command.UsageError("load which archive? One file, or - for standard input")
			case what == "load":
				return loadImages(c, o.Socket, endpoint, names[0])
			case one == nil:
				return command.UsageError("images %s: there are only load, rm, prune and pull", what)
			case len(names) == 0:
				return command.UsageError("which image? As in `monopod images %s docker.io/library/busybox:1`", what)
			}
			return command.Down(each(names, func(name string) error { return one(c.Context, c.App.Writer, o.Socket, name) }))
		},
	}
}
