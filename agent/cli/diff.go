package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/check"
	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/diff"
	"monopod/agent/cli/print"
	plans "monopod/agent/settings"
)

func diffCommand() *cli.Command {
	var o Options
	return &cli.Command{
		Name: "diff", ArgsUsage: "FILE|DIR|- ...", Usage: "say what manifests would change of the pods that run",
		Description: `
Each pod is new, unchanged, updated, resized, restarted or replaced, with the fields
that differ, because of which of them or what else it is restarted or replaced, what
that waits for, as a hold, the update window or the lock of its workload, and whether
it is on trial. Of ConfigMaps and Secrets with other
contents it says what that means to the pods that run. Values of variables and what
may be secret are not told. Of a folder that is the agent's own, or with --prune in
place of it, it also says which pods would be removed.

The settings are the agent's unless --config gives others. Where the agent does
not run, this is said on standard error, and what it reported last counts.

Exit codes: 0: nothing would change; 1: something would; 2: wrong flags, a
manifest is refused, or it is not known what runs.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "prune", Usage: "take the folder for all that the agent's folder will have"},
			command.OutputFlag(&o.Output, "json or yaml"),
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
			if err := r.Print(c.App.Writer, o.Output); err != nil {
				return err
			}
			if r.Changes > 0 {
				return cli.Exit("", command.ExitFailed)
			}
			return nil
		},
	}
}

// diffOf compares what the arguments give with what the agent has.
func diffOf(c *cli.Context, o *Options) (diff.Report, error) {
	var none diff.Report
	args := c.Args().Slice()
	folders := diff.Folders(args)
	switch {
	case len(args) == 0:
		return none, fmt.Errorf("diff what? Give files or folders, or - for standard input")
	case c.Bool("prune") && len(folders) == 0:
		return none, fmt.Errorf("--prune needs a folder")
	}
	cfg, _, err := readSettings(c)
	if err != nil {
		return none, err
	}
	o.Now = time.Now()
	k, err := o.open(c.Context)
	if err != nil {
		return none, err
	}
	cfg.Root = o.Root
	cfg = diff.Settings(c.Context, k, o.Socket, cfg, command.GivenBy(c, "config") == "")
	v, err := check.All(c.Context, cfg, check.Given{IsAccepted: diff.IsAccepted(k)}, args, c.App.Reader)
	if err != nil {
		return none, err
	}
	v.CheckUIDs()
	refused := false
	for _, f := range v.Files {
		for _, p := range f.Problems {
			fmt.Fprintln(c.App.ErrWriter, print.ProblemLine(p, ""))
			refused = refused || !p.Warning
		}
	}
	if refused {
		return none, fmt.Errorf("nothing was compared: a manifest is refused")
	}
	whole := c.Bool("prune") || slices.ContainsFunc(folders, func(dir string) bool { return diff.Same(dir, k.Manifests.Dir) })
	r := diff.Of(k, v.Pods, v.From, whole, plans.Plans(cfg).UpdatePolicy,
		diff.GateOf(c.Context, k, o.Socket, cfg, o.Now))
	r.AddTrials(k, v.Pods, cfg.UpdateHealth, cfg.UpdateStable)
	if len(v.Objects) > 0 {
		addObjects(c, &r, k, v, cfg.Root)
	}
	return r, nil
}

// addObjects adds what other contents of ConfigMaps and Secrets mean, where those that the agent has
// can be read: they are in files that only its user may read.
func addObjects(c *cli.Context, r *diff.Report, k *client.Known, v *check.Result, root string) {
	has, err := checkpoint.SavedObjects(root)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it never had any
	case err != nil:
		fmt.Fprintf(c.App.ErrWriter, "monopod: ConfigMaps and Secrets are not compared with those that the agent has: %v\n", err)
	default:
		r.AddObjects(k, v.Pods, has, v.Objects)
	}
}
