package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/check"
	"monopod/agent/cli/command"
	"monopod/agent/config"
	"monopod/agent/handover"
	"monopod/agent/node"
	"monopod/agent/print"
	values "monopod/agent/settings"
	"monopod/cri"
	"monopod/manifests/fetch"
)

func adoptCommand() *cli.Command {
	return &cli.Command{
		Name: "adopt", Usage: "take over the pods that a kubelet left running",
		Description: `
The kubelet has been stopped, and the agent does not run yet. Give it the flags that
"monopod run" gets: the folder of manifests and the root dir are those of the kubelet. A
URL that gives manifests, too, is asked, and must answer.
It says which pods run and would be taken over as they are, which the agent would start,
and what differs, so that a pod cannot be taken over. With --yes it records the pods in
the root dir, all or none. It touches neither the pods nor their files; the agent that
starts next goes on with them.

Where a kubelet had monopod's pods for a while, this is the way back, too.

Exit codes: 0; 1: a pod cannot be taken over, or a kubelet or the agent runs; 2: wrong
flags or settings, or a manifest is refused.`,
		Flags:  append(runFlags(), &cli.BoolFlag{Name: "yes", Usage: "record what is taken over"}),
		Action: adopt,
	}
}

func adopt(c *cli.Context) error {
	if err := command.NoArgs(c, "; the folder goes after --manifests"); err != nil {
		return err
	}
	cfg, _, err := readSettings(c)
	if err == nil {
		cfg, err = values.Complete(cfg, false)
	}
	if err != nil {
		return command.UsageError("%w", err)
	}
	var given check.Given
	if url := cfg.ManifestURL; url != "" {
		a, err := fetch.New(values.Fetch(cfg, nil)).Ask(c.Context)
		if err != nil {
			return fmt.Errorf("nothing is adopted, as it is not known what the manifest URL gives: %w", err)
		}
		given.Page = &check.Page{URL: url, Body: a.Data}
	}
	v, err := check.All(c.Context, cfg, given, cfg.Manifests, c.App.Reader)
	if err != nil {
		return command.UsageError("%w", err)
	}
	if isRefused(c.App.ErrWriter, v) {
		return command.UsageError("nothing is adopted: a manifest is refused")
	}
	if err := nobodyRuns(cfg.Root); err != nil {
		return err
	}
	runtime, err := cri.Dial(values.Endpoints(cfg)...)
	if err != nil {
		return err
	}
	defer runtime.Close()
	a := handover.Adopter{Hierarchies: hierarchies, Pods: v.Pods, Marks: checkpoint.MarksIn(cfg.Root), CRI: runtime}
	if a.Node, err = nodeOf(c.Context, cfg, runtime); err != nil {
		return err
	}
	s, err := a.Survey(c.Context)
	if err != nil {
		return err
	}
	printSurvey(c.App.Writer, &s)
	if !s.CanAdopt() {
		return fmt.Errorf("nothing is adopted: monopod would make the pods that differ again, beside what is there")
	}
	return record(c, cfg, &s)
}

// nobodyRuns refuses to look while an agent may change what it sees.
func nobodyRuns(root string) error {
	if k := handover.Kubelet(proc); k != "" {
		return fmt.Errorf("a kubelet runs, as %s: stop it and keep it from starting again, as by systemctl disable --now kubelet; its pods run on", k)
	}
	if pid := checkpoint.Holder(root); pid != "" {
		return fmt.Errorf("the agent of %s runs (process %s): stop it; its pods run on", root, pid)
	}
	return nil
}

// nodeOf returns what the agent would have with these settings.
func nodeOf(ctx context.Context, cfg config.Config, runtime *cri.Client) (handover.Node, error) {
	n := handover.Node{Name: cfg.NodeName, Root: cfg.Root, PodLogs: cfg.PodLogs, CgroupRoot: cfg.CgroupRoot, SeccompDefault: cfg.SeccompDefault}
	var err error
	n.CgroupDriver, err = node.Driver(ctx, values.Node(cfg), runtime)
	return n, err
}

func printSurvey(w io.Writer, s *handover.Survey) {
	var t print.Table
	for _, c := range s.Candidates {
		if len(c.Differs) == 0 {
			t.Line("take over", c.Pod.Key().String(), fmt.Sprintf("containers that run: %d", c.Running))
		}
		for _, why := range c.Differs {
			t.Line("differs", c.Pod.Key().String(), print.OneLine(why))
		}
	}
	for _, key := range s.Own {
		t.Line("own", key.String(), "it is this root dir's already")
	}
	for _, key := range s.New {
		t.Line("start", key.String(), "nothing runs of it")
	}
	for _, name := range s.Left {
		t.Line("leave", name, "no manifest gives it here: it runs on without an agent")
	}
	t.Print(w)
}

// record writes down what is taken over, if that is wished. A list of what was adopted before is
// written again: it may be damaged.
func record(c *cli.Context, cfg config.Config, s *handover.Survey) error {
	hasList := checkpoint.Exists(filepath.Join(cfg.Root, checkpoint.AdoptedFile))
	if len(s.Candidates) == 0 && !(hasList && c.Bool("yes")) {
		_, err := fmt.Fprintln(c.App.Writer, "There is nothing to adopt.")
		return err
	}
	if !c.Bool("yes") {
		_, err := fmt.Fprintln(c.App.Writer, "Nothing is changed: --yes adopts these pods.")
		return err
	}
	root, err := checkpoint.OpenRoot(cfg.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	root.KeepNodeName(cfg.NodeName)
	if err := s.Adopt(root, checkpoint.ReadBoot(), slog.New(slog.NewTextHandler(c.App.ErrWriter, nil))); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "Pods adopted: %d. Start monopod with the same settings.\n", len(s.Candidates))
	return err
}
