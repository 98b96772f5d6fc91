package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"

	"monopod/agent"
	"monopod/agent/archives"
	"monopod/agent/cli/check"
	"monopod/agent/cli/command"
	"monopod/agent/cli/terminal"
	"monopod/agent/config"
	"monopod/agent/managed"
	"monopod/agent/once"
	"monopod/agent/print"
	"monopod/manifests"
)

// exitBroken: monopod or the runtime failed, not the work.
const exitBroken = 125

const onceAbout = `
Pods with restartPolicy Never or OnFailure are jobs: the run ends when all of
them have ended. Other pods run beside them and are stopped then. What the
containers write goes to standard output, what the run waits for to standard
error.
Nothing is left of the run, and nothing else that runs on the machine is
touched. The folder of the run is made in TMPDIR; the runtime must see it under
the same name.
Where no runtime of this machine is ready, and has a network if a pod needs
one, a containerd is started for the run and removed with it.

Exit codes:

    0            all jobs have succeeded, or with --until ready all pods are
                 ready
    2            wrong flags or invalid manifests; nothing was started
    124          --timeout was over before the work was done
    125          monopod or the runtime failed, or a pod can never run here,
                 such as one of which a container failed to be created with the
                 same answer five times in a row; without --timeout also if all
                 that the run waits for has crashed, or failed to start, as
                 often
    126 127      CRI-O cannot execute a container's command, or does not find
                 it; with containerd that is how the container ends, with 128
    129 130 143  ended by SIGHUP, SIGINT or SIGTERM: pods are stopped within
                 their grace; a second one kills them, a third one gives up
    other        of the container that failed first in a pod that failed, or
                 of the one that --exit-code-from names`

func onceCommand() *cli.Command {
	return &cli.Command{
		Name: "once", ArgsUsage: "FILE|DIR|- ...", Usage: "run pods to their end and exit with the outcome",
		Description: onceAbout,
		Flags: append([]cli.Flag{
			&cli.DurationFlag{Name: "timeout", Usage: "how much `TIME` the work may take, such as 10m (default: any)"},
			&cli.StringFlag{Name: "until", Usage: "end at the `STATE` ready: when all pods are, or have succeeded"},
			&cli.BoolFlag{Name: "keep", Usage: "with --until ready: leave the pods running then"},
			&cli.StringFlag{Name: "exit-code-from",
				Usage: "exit with the code of `POD[/CONTAINER]`; the run does not wait for its pod's other containers"},
			&cli.BoolFlag{Name: "fail-fast", Usage: "end at the first pod that fails, whatever else runs"},
			&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, KeepSpace: true,
				Usage: "put a value in the place of $(NAME) in the manifests: `NAME=VALUE`, or NAME for that of the environment"},
			&cli.StringSliceFlag{Name: "env-file", Usage: "take NAME=VALUE lines from `FILE`"},
			&cli.StringSliceFlag{Name: "set", Usage: "give containers of a name another image: `NAME=IMAGE`"},
			&cli.StringSliceFlag{Name: "artifact", KeepSpace: true,
				Usage: "copy `POD/CONTAINER:/PATH=DIR` out before the run is removed"},
			&cli.StringSliceFlag{Name: "load", Usage: "give the runtime the images of the archive `FILE` first; may be given more than once"},
			&cli.StringFlag{Name: "dir", Usage: "make the folder of the run at `DIR` and not in TMPDIR"},
			&cli.StringSliceFlag{Name: "report", KeepSpace: true,
				Usage: "write a report as `junit=FILE` or json=FILE; may be given more than once"},
			&cli.BoolFlag{Name: "no-color", Usage: "no colours, not even on a terminal"},
			&cli.StringFlag{Name: "remove",
				Usage: "remove what a previous run left in the folder `DIR`, instead of running anything"},
			command.Choice(&cli.StringFlag{Name: "log-level", Value: "warn", Usage: "the least `LEVEL` of monopod's own log"}, levels...),
		}, runtimeFlags()...),
		Action: runOnce,
	}
}

// runtimeFlags are those of run that once has too.
func runtimeFlags() []cli.Flag {
	shared := []string{"runtime-endpoint", "managed-runtime", "node-name", "node-ip", "node-labels", "resolv-conf", "cgroup-driver", "cgroup-root",
		"config", "image-credential-provider-config", "image-credential-provider-bin-dir", "log-format"}
	return slices.DeleteFunc(runFlags(), func(f cli.Flag) bool { return !slices.Contains(shared, f.Names()[0]) })
}

// checkOnce rejects flags that do not go together.
func checkOnce(c *cli.Context) error {
	until, remove := c.String("until"), c.String("remove") != ""
	switch {
	case remove && c.NArg() > 0:
		return fmt.Errorf("--remove runs nothing: leave out %s", c.Args().First())
	case !remove && c.NArg() == 0:
		return fmt.Errorf("once what? Give files or folders, or - for standard input")
	case until != "" && until != "ready":
		return fmt.Errorf("--until %q: there is only ready", until)
	case c.Bool("keep") && until == "":
		return fmt.Errorf("--keep goes with --until ready: else nothing runs any more that could be kept")
	case until != "" && c.String("exit-code-from") != "":
		return fmt.Errorf("--until ready and --exit-code-from: choose one, for a container that runs has no code")
	case c.Duration("timeout") < 0:
		return fmt.Errorf("--timeout %s: a time above 0", c.Duration("timeout"))
	}
	return nil
}

// mayRun rejects a user who can neither use the runtime nor make cgroups.
func mayRun(user int) error {
	if user != 0 {
		return errors.New("once needs the runtime, mounts and cgroups: run it as root")
	}
	return nil
}

// runOnce runs pods to their end, or removes what a previous run left.
func runOnce(c *cli.Context) (err error) {
	dir := c.String("remove")
	run := once.Config{Timeout: c.Duration("timeout"), Ready: c.String("until") == "ready", Keep: c.Bool("keep"), FailFast: c.Bool("fail-fast"),
		Out: c.App.Writer, Err: c.App.ErrWriter, Colour: !c.Bool("no-color") && print.Colored(c.App.Writer, os.Getenv)}
	if dir == "" { // first of all: what a former run wrote must not stand for this one
		run.Pipeline = once.PipelineOf(os.Getenv, c.App.ErrWriter)
		run.Reports, err = reportsOf(c)
	}
	if err != nil {
		return command.UsageError("%v", err)
	}
	if err := checkOnce(c); err != nil {
		return unstarted(run, command.UsageError("%v", err))
	}
	cfg, log, err := onceSettings(c)
	if err != nil {
		return unstarted(run, command.UsageError("%v", err))
	}
	options := agent.Options{Version: Version().Version, Log: log}
	if dir != "" {
		return removeRun(c.Context, dir, cfg, options, run)
	}
	code, err := runPods(c, cfg, options, &run)
	if err != nil {
		return unstarted(run, err)
	}
	return exitOnce(code, nil)
}

// unstarted reports a run of which no pod was started, and returns the error of the command.
func unstarted(run once.Config, err error) error {
	if command.ExitCode(err) == command.ExitUsage {
		_, _ = once.Unstarted(run, command.ExitUsage, errors.New(cmp.Or(err.Error(), "the manifests are invalid")))
		return err
	}
	code, why := once.Unstarted(run, exitBroken, err)
	return cli.Exit(why, code)
}

// runPods runs the pods of the arguments. Its error is why none was started. It completes run.
func runPods(c *cli.Context, cfg config.Config, options agent.Options, run *once.Config) (code int, err error) {
	signals := onceSignals()
	defer signal.Stop(signals)
	run.Signals = signals
	good, err := readRun(c, cfg, run)
	if err != nil {
		return 0, err
	}
	if err := mayRun(os.Geteuid()); err != nil {
		return 0, err
	}
	if err := prepareRuntime(c, &cfg, options, run.Pods); err != nil {
		return 0, err
	}
	if cfg.Root, err = once.MakeRoot(c.String("dir")); err != nil {
		return 0, err
	}
	if err := noteOf(cfg, *run).Claim(cfg.Root); err != nil {
		return 0, err
	}
	run.Starts = once.NewStarts()
	work := &agent.Once{Pods: good.Pods, Objects: good.Objects, Failed: run.Starts.Failed}
	return startRun(c.Context, cfg, work, options, *run)
}

// readRun reads all that the arguments and flags name, completes run by it, and returns what the
// manifests give. A signal ends it, and a second one the process: a pipe may have no end, and a disk
// may hang.
func readRun(c *cli.Context, cfg config.Config, run *once.Config) (*check.Result, error) {
	ctx, stop := terminal.UntilSignal(context.WithoutCancel(c.Context))
	defer stop()
	if came := context.Cause(c.Context); came != nil { // before this
		return nil, came
	}
	good, err := readFiles(ctx, c, cfg, run)
	if signaled := (*terminal.Interrupted)(nil); errors.As(context.Cause(ctx), &signaled) {
		return nil, signaled
	}
	return good, err
}

// readFiles is readRun until ctx ends.
func readFiles(ctx context.Context, c *cli.Context, cfg config.Config, run *once.Config) (*check.Result, error) {
	fill, err := fillOf(c)
	if err != nil {
		return nil, command.UsageError("%v", err)
	}
	good, err := onlyGood(ctx, c, cfg, fill, run)
	if err != nil {
		return nil, err
	}
	for _, p := range good.Pods {
		run.Pods = append(run.Pods, p.Pod)
	}
	if err := completeOnce(run, c); err != nil {
		return nil, command.UsageError("%v", err)
	}
	if run.Load, err = archivesOf(ctx, c); err != nil {
		return nil, command.UsageError("%v", err)
	}
	return good, nil
}

// onceSignals returns the signals that end a run.
func onceSignals() chan os.Signal {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, terminal.EndSignals()...)
	return signals
}

// noteOf is what is needed to remove what a run leaves, as far as it is known.
func noteOf(cfg config.Config, run once.Config) once.Note {
	return once.Note{Endpoint: cfg.Endpoint, NodeName: cfg.NodeName, CgroupDriver: cfg.CgroupDriver, CgroupRoot: cfg.CgroupRoot,
		Managed: cfg.ManagedRuntime, Keep: run.Keep}
}

// reportsOf returns the reports of --report. What a former run wrote to their files is gone then.
func reportsOf(c *cli.Context) (all []once.Report, err error) {
	for _, text := range c.StringSlice("report") {
		r, err := once.ParseReport(text)
		if err != nil {
			return nil, err
		}
		path := filepath.Clean(r.Path)
		if slices.ContainsFunc(all, func(o once.Report) bool { return filepath.Clean(o.Path) == path }) {
			return nil, fmt.Errorf("--report %q: another report goes to that file: give each a file of its own", text)
		}
		all = append(all, r)
	}
	return all, nil
}

// onceSettings returns the settings of a run, and its log: of warnings alone, unless a level is chosen.
func onceSettings(c *cli.Context) (config.Config, *slog.Logger, error) {
	level := &slog.LevelVar{}
	level.Set(slog.LevelWarn)
	log, err := logger(c.String("log-format"), level, c.App.ErrWriter)
	if err != nil {
		return config.Config{}, nil, err
	}
	chosen := c.IsSet("log-level")
	if !chosen {
		log = slog.New(once.Quiet(log.Handler()))
	}
	cfg, err := settings(c, log)
	if err != nil {
		return cfg, nil, err
	}
	if chosen {
		level.Set(cfg.Level())
	}
	if cfg.ManagedRuntime && cfg.Endpoint != "" {
		return cfg, nil, managed.ErrTwo
	}
	return cfg, log, nil
}

// archivesOf returns the archives of --load, which it checks.
func archivesOf(ctx context.Context, c *cli.Context) ([]string, error) {
	all := c.StringSlice("load")
	for _, file := range all {
		err := archives.Check(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("--load %s: %w", file, err)
		}
	}
	return all, nil
}

// completeOnce fills in what depends on the pods, and on files that must exist.
func completeOnce(run *once.Config, c *cli.Context) (err error) {
	if from := c.String("exit-code-from"); from != "" {
		if run.From, err = once.Choose(run.Pods, from); err != nil {
			return err
		}
	}
	for _, text := range c.StringSlice("artifact") {
		a, err := once.ParseArtifact(run.Pods, text)
		if err != nil {
			return err
		}
		run.Artifacts = append(run.Artifacts, a)
	}
	return nil
}

// onlyGood returns the pods and objects of the arguments. If one is refused, or a pod refers to
// what no file gives, it prints all problems, notes them in run for its reports, and returns none.
func onlyGood(ctx context.Context, c *cli.Context, cfg config.Config, fill *manifests.Fill, run *once.Config) (*check.Result, error) {
	v, err := check.All(ctx, cfg, check.Given{Fill: fill}, c.Args().Slice(), c.App.Reader)
	if err != nil {
		return nil, command.UsageError("%v", err)
	}
	v.CheckObjects(": add it to the files of the run, which are read once", false)
	var text bytes.Buffer
	n, err := check.Print(&text, v.Files)
	if err == nil && n.Problems+n.Warnings+n.Notes > 0 {
		_, err = c.App.ErrWriter.Write(text.Bytes())
	}
	for _, file := range v.Files {
		for _, p := range file.Problems {
			run.Pipeline.Problem(p)
			if !p.Warning {
				run.Problems = append(run.Problems, print.ProblemLine(p, ""))
			}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case n.Problems > 0:
		return nil, command.UsageError("")
	case len(v.Pods) == 0:
		return nil, command.UsageError("there are no pods in %s", c.Args().First())
	}
	if none := fill.Unused(); len(none) > 0 {
		return nil, command.UsageError("--set: no pod has a container %s", strings.Join(none, ", "))
	}
	var pods []*v1.Pod
	for _, p := range v.Pods {
		pods = append(pods, p.Pod)
	}
	once.Fresh(pods)
	return v, nil
}

// removeRun removes what a run left.
func removeRun(ctx context.Context, dir string, cfg config.Config, o agent.Options, run once.Config) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return command.UsageError("--remove: %v", err)
	}
	note, err := once.ReadNote(dir)
	if err != nil {
		return command.UsageError("--remove: %v", err)
	}
	cfg.Root, cfg.ManagedRuntime = dir, note.Managed
	cfg.Endpoint, cfg.NodeName, cfg.CgroupDriver, cfg.CgroupRoot = note.Endpoint, note.NodeName, note.CgroupDriver, note.CgroupRoot
	if note.Managed {
		cfg.Endpoint = "" // it is in the folder
	}
	signals := onceSignals()
	defer signal.Stop(signals)
	run.Signals = signals
	return exitOnce(startRun(ctx, cfg, &agent.Once{}, o, run))
}

func exitOnce(code int, err error) error {
	switch {
	case err != nil:
		return cli.Exit(err, exitBroken)
	case code != 0:
		return cli.Exit("", code)
	}
	return nil
}

// abandon releases an agent that is not run, and removes the runtime that it has started.
func abandon(ctx context.Context, a *agent.Agent) error {
	a.Abandon()
	m := a.Managed()
	if m == nil {
		return nil
	}
	return m.Remove(context.WithoutCancel(ctx))
}

// startRun runs an agent for one run. Its error is why it could not be started: then the folder of the
// run is removed, unless something in it is needed to remove the rest.
func startRun(ctx context.Context, cfg config.Config, work *agent.Once, o agent.Options, run once.Config) (code int, err error) {
	cfg.PodLogs = filepath.Join(cfg.Root, "logs")
	signal.Ignore(syscall.SIGPIPE) // a closed output is no reason to leave the pods running
	discard := func(left error) {
		if left == nil && len(work.Pods) > 0 { // else a former run has it
			left = once.Discard(ctx, cfg.Root)
		}
		if left != nil {
			fmt.Fprintf(run.Err, "monopod: %v\nmonopod: not all could be removed; %s to retry\n", left, once.Removal(cfg.Root))
		}
	}
	a, err := agent.New(cfg, work, o)
	if err != nil {
		discard(nil)
		return 0, err
	}
	note := noteOf(cfg, run)
	note.Endpoint = a.Endpoint() // of pods that may exist
	if err := note.Write(cfg.Root); err != nil {
		o.Log.Warn("a run that is killed must be told the runtime for --remove", "err", err)
	}
	if m := a.Managed(); m != nil {
		if err := m.Start(ctx); err != nil {
			discard(abandon(ctx, a))
			return 0, err
		}
	}
	for _, file := range run.Load {
		_, err := loadInto(ctx, file, nil, a.Endpoint())
		if err != nil {
			discard(abandon(ctx, a))
			return 0, err
		}
	}
	run.Agent, run.Root, run.PodLogs = a, cfg.Root, cfg.PodLogs
	return once.Run(context.WithoutCancel(ctx), run), nil // it handles signals itself
}
