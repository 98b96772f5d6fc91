package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/print"
)

// topTimeout is more than others get: rates take two looks, and the runtime may
// be asked.
const topTimeout = 15 * time.Second

// TopOptions says what Top prints and how.
type TopOptions struct {
	print.TopOptions
	Socket string // of the agent
}

// Top prints what the node and its pods use now.
func Top(ctx context.Context, w io.Writer, o TopOptions) error {
	if err := o.Check(); err != nil {
		return err
	}
	text, err := top(ctx, o)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func top(ctx context.Context, o TopOptions) ([]byte, error) {
	path := "/stats/summary?only_cpu_and_memory=true"
	if o.Output != "" {
		path = "/stats/summary"
	}
	body, err := client.GetWithin(ctx, topTimeout, o.Socket, path)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if o.Output == "json" || o.Output == "yaml" {
		return topRaw(&out, body, o)
	}
	var sum statsapi.Summary
	var node v1.Node
	if err := json.Unmarshal(body, &sum); err != nil {
		return nil, fmt.Errorf("GET %s from %s: %w", path, o.Socket, err)
	}
	if o.What != "pods" {
		_ = client.GetJSON(ctx, o.Socket, "/node", &node) // an agent that just starts has none yet: no shares then
	}
	print.Top(&out, &sum, &node, o.TopOptions)
	return out.Bytes(), nil
}

// topRaw prints what the endpoint gave, or the part that was asked for.
func topRaw(out *bytes.Buffer, body []byte, o TopOptions) ([]byte, error) {
	var parts struct{ Node, Pods json.RawMessage }
	if err := json.Unmarshal(body, &parts); err != nil {
		return nil, fmt.Errorf("what %s answers: %w", o.Socket, err)
	}
	v := json.RawMessage(body)
	switch o.What {
	case "node":
		v = parts.Node
	case "pods":
		v = parts.Pods
	}
	err := print.As(out, o.Output, v)
	return out.Bytes(), err
}

func topCommand() *cli.Command {
	var o TopOptions
	return &cli.Command{
		Name: "top", ArgsUsage: "[pods|node]", Usage: "show what the node and its pods use",
		Description: `
CPU is what was used of late, in thousandths of a core; memory is what cannot
easily be freed. The node's shares are of what pods may have.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "containers", Aliases: []string{"c"}, Destination: &o.Containers,
				Usage: "a line for each container"},
			&cli.StringFlag{Name: "sort-by", Destination: &o.SortBy, Usage: "the largest first, by `WHAT`: cpu or memory"},
			command.OutputFlag(&o.Output, "wide, json or yaml"),
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "refresh every two seconds; needs a terminal"},
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.NArg() > 1:
				return command.UsageError("top takes one argument, got %q as well", c.Args().Get(1))
			case c.NArg() == 1:
				subject, ok := map[string]string{"pod": "pods", "pods": "pods", "node": "node", "nodes": "node"}[c.Args().First()]
				if !ok {
					return command.UsageError("top of %q: choose pods or node", c.Args().First())
				}
				o.What = subject
			}
			if !c.Bool("watch") {
				return Top(c.Context, c.App.Writer, o)
			}
			screen, _ := c.App.Writer.(*os.File)
			if !isTerminal(screen) || o.Output == "json" || o.Output == "yaml" {
				return command.UsageError("--watch needs a terminal and prints no json or yaml; leave it out")
			}
			return TopWatch(c.Context, c.App.Writer, func() int {
				_, rows, _ := term.GetSize(int(screen.Fd()))
				return rows
			}, o)
		},
	}
}
