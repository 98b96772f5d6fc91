package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
)

// EventsOptions is which events Events prints and how.
type EventsOptions struct {
	Options
	Pod   string        // as for FindPod; "": all events, or those of Choice's namespace
	Watch bool          // continue with new ones
	Since time.Duration // only those seen within this time; 0: all
	Types []string      // Normal or Warning; none: all
}

// Events prints the events of the node, or those about a pod, the latest last.
func Events(ctx context.Context, w io.Writer, o EventsOptions) error {
	o.Now = cmp.Or(o.Now, time.Now())
	k, err := o.open(ctx)
	if err != nil {
		return err
	}
	all, err := k.Events(ctx, "")
	if err != nil {
		return err
	}
	pod, none := "", "No events."
	switch namespace := o.Choice.Namespace; {
	case o.Pod != "":
		none = fmt.Sprintf("No events of pod %s.", o.Pod)
		if pod, err = k.PodOfEvents(o.Pod, namespace, all); err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(e v1.Event) bool { return client.PodOf(&e) != pod })
	case namespace != "":
		none = fmt.Sprintf("No events in namespace %s.", namespace)
		all = slices.DeleteFunc(all, func(e v1.Event) bool { return e.Namespace != namespace })
	}
	all = slices.DeleteFunc(all, func(e v1.Event) bool { return !o.takes(&e, o.Now) })
	if o.Watch {
		return watchEvents(ctx, w, o, k, pod, all)
	}
	return print.Events(w, o.notes(), all, none, o.Format)
}

// takes reports whether an event is of the requested types, and recent enough.
func (o EventsOptions) takes(e *v1.Event, now time.Time) bool {
	late := o.Since == 0 || !e.LastTimestamp.Time.Before(now.Add(-o.Since))
	return late && (len(o.Types) == 0 || slices.Contains(o.Types, e.Type))
}

// setTypes reads the types as people write them: "warning", "Normal,Warning".
func (o *EventsOptions) setTypes(given []string) error {
	for _, word := range strings.Split(strings.Join(given, ","), ",") {
		switch strings.ToLower(word) {
		case "":
		case "normal":
			o.Types = append(o.Types, v1.EventTypeNormal)
		case "warning":
			o.Types = append(o.Types, v1.EventTypeWarning)
		default:
			return command.UsageError("--types %q: choose Normal or Warning", word)
		}
	}
	return nil
}

// watchEvents prints those events, then new ones until ctx ends. It returns an error when the
// agent ends.
func watchEvents(ctx context.Context, w io.Writer, o EventsOptions, k *client.Known, pod string, past []v1.Event) error {
	p := print.NewEventPrinter(w, o.Format)
	if k.Down() {
		for i := range past {
			if err := p.Print(&past[i], o.Now); err != nil {
				return err
			}
		}
		return fmt.Errorf("%w, so there is nothing to watch: %s", client.ErrDown, client.WhereToLook())
	}
	if err := p.Past(past); err != nil {
		return err
	}
	for {
		ended, err := client.WatchEvents(ctx, o.Socket, pod, func(e *v1.Event) error {
			if o.Choice.Namespace != "" && e.Namespace != o.Choice.Namespace || !o.takes(e, time.Now()) {
				return nil
			}
			return p.Print(e, time.Now())
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case ended < time.Minute: // only a stream whose agent ends is so short
			return fmt.Errorf("the monopod on %s has ended", o.Socket)
		}
	}
}

func eventsCommand() *cli.Command {
	var o EventsOptions
	return &cli.Command{
		Name: "events", ArgsUsage: "[POD]", Usage: "show what happened to pods and the node, or to one pod",
		Description: `
The latest come last. A POD is meant by its name in the manifest or its full
name, with its namespace before it if that is not enough, as in
kube-system/web. It may be gone already. Where the agent does not run, this is
said on standard error and what it left is shown.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Destination: &o.Watch,
				Usage: "go on with what happens from now on"},
			&cli.StringFlag{Name: "for", Destination: &o.Pod, Usage: "only those about the pod `POD`, as when it is named"},
			&cli.DurationFlag{Name: "since", Destination: &o.Since, Usage: "only those of the last `DURATION`, such as 90s, 5m or 2h"},
			&cli.StringSliceFlag{Name: "types", KeepSpace: true, Usage: "only those of `TYPE`: Normal or Warning"},
			command.OutputFlag(&o.Output, "wide", "json", "yaml"),
			command.NamespaceFlag(&o.Choice.Namespace),
			command.AllNamespacesFlag(&o.AllNamespaces),
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return command.UsageError("events takes one pod, got %q too", c.Args().Get(1))
			}
			if o.Pod != "" && c.NArg() == 1 {
				return command.UsageError("name the pod once: %q or --for %s", c.Args().First(), o.Pod)
			}
			if c.IsSet("since") && o.Since <= 0 {
				return command.UsageError("--since %s: give a time that is over, such as 5m", o.Since)
			}
			if err := o.setTypes(c.StringSlice("types")); err != nil {
				return err
			}
			if c.NArg() == 1 {
				o.Pod = c.Args().First()
			}
			o.on(c)
			return Events(c.Context, c.App.Writer, o)
		},
	}
}
