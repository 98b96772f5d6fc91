package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"monopod/agent/cli/client"
	"monopod/agent/status"
)

// imagesTimeout bounds the question for images, which the agent passes on to
// the runtime.
const imagesTimeout = 30 * time.Second

// Images prints the runtime's images, the pods that use them and which of them
// go.
func Images(ctx context.Context, w io.Writer, o Options) error {
	if err := checkOutput(o.Output, "wide", "json", "yaml"); err != nil {
		return err
	}
	body, err := client.GetWithin(ctx, imagesTimeout, o.Socket, "/images")
	if err != nil {
		return err
	}
	if o.Output == "json" || o.Output == "yaml" {
		return printAs(w, o.Output, json.RawMessage(body))
	}
	var all status.Images
	if err := json.Unmarshal(body, &all); err != nil {
		return fmt.Errorf("GET /images from %s: %w", o.Socket, err)
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	return imageList(w, &all, o.Format)
}

func imagesCommand() *command {
	var o Options
	return &command{
		name: "images", usage: "list the images, who uses them, and which are to go",
		flags: func(f *pflag.FlagSet) {
			outputFlag(f, &o.Output, "wide, json or yaml")
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *Call) error {
			if err := c.none(""); err != nil {
				return err
			}
			return Images(ctx, c.Out, o)
		},
	}
}
