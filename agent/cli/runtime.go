package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"

	"monopod/agent"
	"monopod/agent/config"
	"monopod/agent/managed"
	"monopod/agent/once"
	"monopod/cri"
)

// prepareRuntime removes what killed runs left of their runtimes, and settles which one this run has.
// It prints what it does.
func prepareRuntime(c *cli.Context, cfg *config.Config, o agent.Options, pods []*v1.Pod) error {
	say := func(format string, args ...any) { fmt.Fprintf(c.App.ErrWriter, "monopod: "+format+"\n", args...) }
	sweepRuns(c, *cfg, o, say)
	return chooseRuntime(c.Context, cfg, pods, say)
}

// chooseRuntime settles which runtime a run of pods has: the one that the settings name, else one
// of the machine's that can run the pods, else one of its own. It says which, and why.
func chooseRuntime(ctx context.Context, cfg *config.Config, pods []*v1.Pod, say func(string, ...any)) error {
	if cfg.Endpoint != "" {
		return nil
	}
	why := "as asked for"
	if !cfg.ManagedRuntime {
		var seen []managed.Seen
		for _, endpoint := range cri.WellKnown() {
			seen = append(seen, managed.Look(ctx, endpoint))
		}
		cfg.Endpoint, why = managed.Choose(seen, slices.ContainsFunc(pods, needsNetwork))
		if cfg.Endpoint != "" {
			say("runtime: %s", why)
			return nil
		}
	}
	if err := managed.Possible(); err != nil {
		return fmt.Errorf("no runtime can run the pods (%s), and %w; or name the socket of one with --runtime-endpoint", why, err)
	}
	cfg.ManagedRuntime = true
	say("runtime: a containerd of its own, started for this run: %s", why)
	return nil
}

func needsNetwork(p *v1.Pod) bool { return !p.Spec.HostNetwork }

// sweepRuns removes what is left of killed runs that had started a runtime, and says how to remove
// what others left.
func sweepRuns(c *cli.Context, cfg config.Config, o agent.Options, say func(string, ...any)) {
	dirs := once.Leftovers()
	if dir, err := filepath.Abs(c.String("dir")); err == nil && c.String("dir") != "" && once.Left(dir) {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		note, err := once.ReadNote(dir)
		if err != nil || !note.Managed || note.Keep {
			say("a previous run was killed, or kept its pods; %s removes what is left of it", once.Removal(dir))
			continue
		}
		say("a previous run in %s was killed: what is left of it, and of the runtime that it had started, is removed", dir)
		err = removeRun(c.Context, dir, cfg, o, once.Config{Out: c.App.Writer, Err: c.App.ErrWriter})
		if err != nil {
			say("%v", errors.Join(err, fmt.Errorf("%s to retry", once.Removal(dir))))
		}
	}
}
