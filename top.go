package main

import (
	"context"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	acli "monopod/agent/cli"
)

func topCommand() *command {
	var o acli.TopOptions
	var watch bool
	return &command{
		name: "top", args: "[pods|node]", usage: "show what the node and its pods use",
		about: "CPU is what was used of late, in thousandths of a core; memory is what cannot easily be freed.\n" +
			"The node's shares are of what pods may have.",
		flags: func(f *pflag.FlagSet) {
			f.BoolVarP(&o.Containers, "containers", "c", false, "a line for each container")
			f.StringVar(&o.SortBy, "sort-by", "", "the largest first, by `WHAT`: cpu or memory")
			outputFlag(f, &o.Output, "wide, json or yaml")
			f.BoolVarP(&watch, "watch", "w", false, "look anew every two seconds; needs a terminal")
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *call) error {
			switch {
			case len(c.args) > 1:
				return exit(exitUsage, "top takes one argument, got %q as well", c.args[1])
			case len(c.args) == 1:
				subject, ok := map[string]string{"pod": "pods", "pods": "pods", "node": "node", "nodes": "node"}[c.args[0]]
				if !ok {
					return exit(exitUsage, "top of %q: choose pods or node", c.args[0])
				}
				o.What = subject
			}
			if !watch {
				return acli.Top(ctx, c.out, o)
			}
			fd := int(c.out.Fd())
			if !term.IsTerminal(fd) || o.Output == "json" || o.Output == "yaml" {
				return exit(exitUsage, "--watch needs a terminal and prints no json or yaml; leave it out")
			}
			return acli.TopWatch(ctx, c.out, func() int {
				_, rows, _ := term.GetSize(fd)
				return rows
			}, o)
		},
	}
}
