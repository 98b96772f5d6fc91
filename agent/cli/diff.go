package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/check"
	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/diff"
	"monopod/agent/config"
	"monopod/agent/hold"
	"monopod/agent/objects"
	"monopod/agent/outlook"
	"monopod/agent/print"
	plans "monopod/agent/settings"
	"monopod/agent/update"
	"monopod/manifests"
)

func diffCommand() *cli.Command {
	var o Options
	return &cli.Command{
		Name: "diff", ArgsUsage: "FILE|DIR|- ...", Usage: "say what manifests would change of the pods that run",
		Description: `
The agent is asked what it would do, by its settings and by what it knows. Each pod is
new, unchanged, updated, resized, restarted or replaced, with the fields that differ,
because of which of them or what else it is restarted or replaced, which containers
restart, what that would wait for, as a hold, the update window, the lock of its
workload, its turn, room, or what it lacks, and whether it is on trial. Of ConfigMaps
and Secrets with other contents it says what that means to the pods that run. Values of
variables and what may be secret are not told. Of a folder that is the agent's own, or
with --prune in place of it, it also says which pods would be removed. If the agent has
several folders, one of them is compared together with the others.

Manifests are read with the settings of the agent unless --config gives others. Where
the agent does not run, diff says so on standard error and compares the files with what
it reported last, by the settings that the next one would have; it knows nothing then of
room, of the start order and of versions that gave way.

Exit codes: 0: nothing would change; 1: something would; 2: wrong flags, a
manifest is refused, or it is not known what runs.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "prune", Usage: "take the folder for all that the agent's folder will have"},
			command.OutputFlag(&o.Output, "json", "yaml"),
			nodeNameFlag(),
			command.ConfigFlag(),
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
		},
		Action: func(c *cli.Context) error {
			r, err := diffOf(c, o.on(c))
			if err != nil {
				return command.UsageError("%w", err)
			}
			err = diff.Print(c.App.Writer, r, o.Output)
			if err != nil {
				return err
			}
			if r.Changes > 0 {
				return cli.Exit("", command.ExitFailed)
			}
			return nil
		},
	}
}

// diffOf returns what the arguments would change of what the agent has.
func diffOf(c *cli.Context, o *Options) (*outlook.Report, error) {
	args := c.Args().Slice()
	folders := diff.Folders(args)
	switch {
	case len(args) == 0:
		return nil, fmt.Errorf("diff what? Give files or folders, or - for standard input")
	case c.Bool("prune") && len(folders) == 0:
		return nil, fmt.Errorf("--prune needs a folder")
	}
	cfg, _, err := readSettings(c)
	if err != nil {
		return nil, err
	}
	o.Now = time.Now()
	k, err := o.open(c.Context)
	if err != nil {
		return nil, err
	}
	cfg = diff.Settings(c.Context, k, o.Socket, cfg, command.GivenBy(c, "config") == "")
	own := k.Manifests.Folders()
	args, isOwn := diff.WithOthers(args, own)
	v, err := check.All(c.Context, cfg, check.Given{IsAccepted: diff.IsAccepted(k)}, args, c.App.Reader)
	if err != nil {
		return nil, err
	}
	v.CheckUIDs()
	if isRefused(c.App.ErrWriter, v) {
		return nil, fmt.Errorf("nothing was compared: a manifest is refused")
	}
	whole := c.Bool("prune") || isOwn
	r, err := outlookOf(c, o, k, cfg, outlook.About(v.Pods, v.Objects, whole))
	if err != nil {
		return nil, err
	}
	for i := range r.Pods {
		r.Pods[i].File = v.From[r.Pods[i].Name]
	}
	return r, nil
}

// isRefused prints the problems of the manifests, and reports whether any is an error.
func isRefused(w io.Writer, v *check.Result) (refused bool) {
	for _, f := range v.Files {
		for _, p := range f.Problems {
			fmt.Fprintln(w, print.ProblemLine(p, ""))
			refused = refused || !p.Warning
		}
	}
	return refused
}

// outlookOf gets the report from the agent, or if none runs from what the last one left.
func outlookOf(c *cli.Context, o *Options, k *client.Known, cfg config.Config, asked *outlook.Asked) (*outlook.Report, error) {
	if !k.Down() {
		var r outlook.Report
		return &r, client.PostJSON(c.Context, o.Socket, "/outlook", asked, &r)
	}
	rules := diff.Rules{Gate: plans.Gate(cfg), Policy: plans.Plans(cfg).UpdatePolicy, Suffix: strings.ToLower(plans.NameSuffix(cfg))}
	n := diff.Offline(k, hold.Recorded(o.Root), rules, o.Now)
	n.World.Limits = func(p *manifests.Pod) update.Limits {
		return update.LimitsOf(p.Pod, cfg.UpdateHealth, cfg.UpdateStable)
	}
	has, err := checkpoint.SavedObjects(o.Root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // else the agent never had any
		fmt.Fprintf(c.App.ErrWriter, "monopod: ConfigMaps and Secrets are not compared with those that the agent has: %v\n", err)
	}
	n.Objects, n.NoObjects = objects.NewSet(has), err != nil
	r := n.Of(asked)
	return &r, nil
}
