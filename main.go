// Command monopod runs Kubernetes static pods on one machine, with nothing
// behind it: a folder of Pod manifests goes in, sandboxes and containers come
// out of a CRI runtime.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"monopod/agent"
	acli "monopod/agent/cli"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2 // wrong flags, or invalid manifests
)

// version is set by the build.
var version = ""

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
		CommandNotFound: nil,
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return cli.Exit(fmt.Sprintf("there is no command %q; `monopod --help` lists them", name), exitUsage)
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			{Name: "run", Usage: "keep the pods of a folder of manifests running", Flags: runFlags(), Action: run, OnUsageError: usageError},
			{Name: "validate", Usage: "check manifests as the agent would", ArgsUsage: "FILE|DIR|- ...", Flags: validateFlags(), Action: validate, OnUsageError: usageError},
			{Name: "ps", Usage: "list the pods and what is wrong with them", Flags: psFlags(), Action: ps, OnUsageError: usageError},
			{Name: "version", Usage: "print the version", Flags: []cli.Flag{outputFlag("json, yaml")}, Action: printVersion, OnUsageError: usageError},
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
		&cli.StringFlag{Name: "listen", Value: "127.0.0.1:10255", Usage: "the TCP `ADDR` of the read-only endpoint; \"\" for none"},
		&cli.StringFlag{Name: "socket", Value: acli.DefaultSocket, Usage: "the `PATH` of the unix socket that the other commands use"},
		&cli.StringFlag{Name: "resolv-conf", Value: "/etc/resolv.conf", Usage: "the resolv.conf `PATH` that pods get their name servers from"},
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
	lean()
	a, err := agent.New(agent.Config{
		Manifests:  c.String("manifests"),
		Endpoint:   c.String("runtime-endpoint"),
		Root:       c.String("root"),
		PodLogs:    c.String("pod-logs"),
		NodeName:   c.String("node-name"),
		Listen:     c.String("listen"),
		Socket:     c.String("socket"),
		ResolvConf: c.String("resolv-conf"),
		Version:    acli.Version(version),
		Log:        log,
	})
	if err != nil {
		return err
	}
	return a.Run(c.Context)
}

// lean makes the collector return memory early: an agent idles nearly always,
// and its node has better use for it. GOGC and GOMEMLIMIT still win.
func lean() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
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

// colored reports whether output on f may have colour.
func colored(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
