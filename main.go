// Command monopod runs Kubernetes static pods on one machine, with nothing
// behind it: a folder of Pod manifests goes in, sandboxes and containers come
// out of a CRI runtime.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"monopod/agent"
	acli "monopod/agent/cli"
	"monopod/agent/status"
	"monopod/manifests"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2 // wrong flags, or invalid manifests
)

const defaultSocket = "/run/monopod.sock"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := app().RunContext(ctx, os.Args)
	stop()
	if err == nil {
		return
	}
	code := exitFailed
	var coded cli.ExitCoder
	if errors.As(err, &coded) {
		code = coded.ExitCode()
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(os.Stderr, "monopod: "+text)
	}
	os.Exit(code)
}

// app is the command line as a table.
func app() *cli.App {
	return &cli.App{
		Name:            "monopod",
		Usage:           "run Kubernetes static pods on one machine, with nothing behind it",
		HideVersion:     true,
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {}, // main exits
		OnUsageError:    usageError,
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return cli.Exit(fmt.Sprintf("there is no command %q; `monopod --help` lists them", name), exitUsage)
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			{Name: "run", Usage: "keep the pods of a folder of manifests running", Flags: runFlags(), Action: run, OnUsageError: usageError},
			{Name: "validate", Usage: "check manifests as the agent would", ArgsUsage: "FILE|DIR|- ...", Flags: validateFlags(), Action: validate, OnUsageError: usageError},
			{Name: "config", Usage: "print what can be set, documented", Flags: configFlags(), Action: config, OnUsageError: usageError},
			{Name: "ps", Usage: "list the pods and what is wrong with them", Flags: psFlags(), Action: ps, OnUsageError: usageError},
			{Name: "images", Usage: "list the images, who uses them, and which are to go", Flags: psFlags(), Action: images, OnUsageError: usageError},
			{Name: "version", Usage: "print the version", Flags: []cli.Flag{outputFlag("json or yaml")}, Action: printVersion, OnUsageError: usageError},
		},
	}
}

func usageError(c *cli.Context, err error, _ bool) error {
	name := "monopod"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != name {
		name += " " + c.Command.Name
	}
	return cli.Exit(fmt.Sprintf("%v; `%s --help` lists the flags", err, name), exitUsage)
}

func runFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "manifests", Usage: "the `DIR` of Pod manifests (*.yaml, *.yml, *.json)"},
		&cli.StringFlag{Name: "runtime-endpoint", Usage: "the CRI runtime's socket, unix://`PATH` (default: containerd's or CRI-O's, whichever is there)"},
		&cli.StringFlag{Name: "root", Value: "/var/lib/monopod", Usage: "the `DIR` for volumes, checkpoints and status"},
		&cli.StringFlag{Name: "pod-logs", Value: "/var/log/pods", Usage: "the `DIR` for the containers' logs"},
		&cli.StringFlag{Name: "node-name", Usage: "the `NAME` that pods get as a suffix (default: the host's name)"},
		&cli.StringFlag{Name: "node-labels", Usage: "the `LABELS` that pods can select besides the usual ones, k=v,k=v"},
		&cli.StringFlag{Name: "listen", Value: agent.DefaultListen, Usage: "the TCP `ADDR` of the read-only endpoint; \"\" for none"},
		&cli.StringFlag{Name: "socket", Value: defaultSocket, Usage: "the `PATH` of the unix socket that the other commands use"},
		&cli.StringFlag{Name: "resolv-conf", Value: "/etc/resolv.conf", Usage: "the resolv.conf `PATH` that pods get their name servers from"},
		&cli.StringFlag{Name: "cgroup-driver", Value: "auto", Usage: "how pods get cgroups: auto (as the runtime), cgroupfs, systemd or none"},
		&cli.StringFlag{Name: "cgroup-root", Value: "/", Usage: "the cgroup `PATH` that holds kubepods; it must exist"},
		configFlag(),
		&cli.StringFlag{Name: "image-credential-provider-config", Usage: "a `FILE` of credential provider plugins, or a folder of such"},
		&cli.StringFlag{Name: "image-credential-provider-bin-dir", Usage: "the `DIR` of their programs"},
		&cli.StringFlag{Name: "log-format", Value: "text", Usage: "text or json"},
		&cli.StringFlag{Name: "log-level", Value: "info", Usage: "debug, info, warn or error"},
	}
}

// run is the agent.
func run(c *cli.Context) error {
	if c.NArg() > 0 {
		return cli.Exit(fmt.Sprintf("run takes no arguments, got %q; the folder goes after --manifests", c.Args().First()), exitUsage)
	}
	log, err := logger(c.String("log-format"), c.String("log-level"), os.Stderr)
	if err != nil {
		return cli.Exit(err.Error(), exitUsage)
	}
	cfg, err := settings(c, log)
	if err != nil {
		return cli.Exit(err.Error(), exitUsage)
	}
	cfg.Version, cfg.Log = acli.Version().Version, log
	a, err := agent.New(cfg)
	if err != nil {
		return err
	}
	return a.Run(c.Context)
}

// nodeLabels reads k=v,k=v.
func nodeLabels(list string) (map[string]string, error) {
	labels := map[string]string{}
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if _, twice := labels[key]; !ok || twice {
			return nil, fmt.Errorf("--node-labels %q: write each label once, as key=value", part)
		}
		labels[key] = value
	}
	return labels, nil
}

// logger returns a logger on w in the given format, from the given level on.
func logger(format, level string, w io.Writer) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: choose debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("--log-format %q: choose text or json", format)
}

func outputFlag(choices string) cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print as " + choices}
}

func psFlags() []cli.Flag {
	return []cli.Flag{outputFlag("wide, json or yaml"), &cli.StringFlag{Name: "socket", Value: defaultSocket, Usage: "the `PATH` of the agent's socket"}}
}

func ps(c *cli.Context) error {
	if c.NArg() > 0 {
		return cli.Exit(fmt.Sprintf("ps takes no arguments, got %q", c.Args().First()), exitUsage)
	}
	return acli.Ps(c.Context, os.Stdout, acli.Options{
		Socket: c.String("socket"), Output: c.String("output"), Color: acli.Colored(os.Stdout, os.Getenv),
	})
}

func images(c *cli.Context) error {
	if c.NArg() > 0 {
		return cli.Exit(fmt.Sprintf("images takes no arguments, got %q", c.Args().First()), exitUsage)
	}
	return acli.Images(c.Context, os.Stdout, acli.Options{Socket: c.String("socket"), Output: c.String("output")})
}

func printVersion(c *cli.Context) error {
	return acli.PrintVersion(os.Stdout, c.String("output"), acli.Version())
}

func validateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "node-name", Usage: "the `NAME` that pods get as a suffix (default: the host's name)"},
		configFlag(),
	}
}

// validate checks the manifests that its arguments stand for, as the agent
// would. It exits with 2 when one is refused.
func validate(c *cli.Context) error {
	if c.NArg() == 0 {
		return cli.Exit("validate what? Give files or folders, or - for standard input", exitUsage)
	}
	cfg, err := settings(c, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return cli.Exit(err.Error(), exitUsage)
	}
	node := cfg.NodeName
	if node == "" {
		node, _ = os.Hostname()
	}
	v := validation{from: map[string]string{}, options: manifests.Options{
		NodeName: strings.ToLower(node), NameSuffix: !cfg.NoNameSuffix, Validation: cfg.Validation, RuntimeClasses: cfg.RuntimeClasses}}
	for _, arg := range c.Args().Slice() {
		if err := v.add(arg, os.Stdin); err != nil {
			return cli.Exit(err.Error(), exitUsage)
		}
	}
	n, err := acli.PrintProblems(os.Stdout, v.files)
	if err != nil {
		return err
	}
	if n.Problems > 0 {
		return cli.Exit("", exitUsage)
	}
	return nil
}

// validation gathers what is found in the files that are checked together.
type validation struct {
	options manifests.Options
	files   []acli.Checked
	from    map[string]string // which file gives a pod
}

// add checks what one argument stands for; "-" is stdin.
func (v *validation) add(arg string, stdin io.Reader) error {
	if arg == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		v.check("-", data)
		return nil
	}
	paths, err := manifests.Paths(arg)
	if err != nil {
		return fmt.Errorf("%s: %w", arg, cmp.Or(errors.Unwrap(err), err))
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			v.files = append(v.files, acli.Checked{Path: path, Problems: []status.Problem{{File: path, Message: errors.Unwrap(err).Error()}}})
			continue
		}
		v.check(path, data)
	}
	return nil
}

// check checks one file. Two pods of one name are a problem, even in two files.
func (v *validation) check(path string, data []byte) {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	pods, found := manifests.Decode(abs, data, v.options)
	f := acli.Checked{Path: path}
	for _, p := range found {
		p.File = path
		f.Problems = append(f.Problems, status.Problem(p))
	}
	for _, p := range pods {
		key := p.Key().String()
		if first, twice := v.from[key]; twice {
			f.Problems = append(f.Problems, status.Problem{File: path, Pod: key, Message: fmt.Sprintf("pod %s is in %s already: one of the two must go", key, first)})
			continue
		}
		v.from[key] = path
		containers := len(slices.Concat(p.Spec.InitContainers, p.Spec.Containers))
		f.Pods = append(f.Pods, acli.CheckedPod{Name: key, Containers: containers})
	}
	v.files = append(v.files, f)
}
