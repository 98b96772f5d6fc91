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

func imagesCommand() *cli.Command {
	var o Options
	return &cli.Command{
		Name: "images", Usage: "list the images, who uses them, and which are to go",
		Flags: []cli.Flag{
			command.OutputFlag(&o.Output, "wide", "json", "yaml"),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			if err := command.NoArgs(c, ""); err != nil {
				return err
			}
			o.on(c)
			return Images(c.Context, c.App.Writer, o)
		},
	}
}
