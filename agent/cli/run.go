// Package cli is the commands of monopod.
package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"monopod/agent"
	"monopod/agent/cli/command"
	"monopod/agent/config"
)

// Exit codes.
const (
	exitDown = 3 // the agent does not run; ps and describe print what it reported last
	exitLate = 124

	exitInterrupted = 130 // as of a shell's command after Ctrl-C
)

// Commands is the command line as a table.
func Commands() []*command.Command {
	return []*command.Command{
		{Name: "run", Usage: "keep the pods of a folder of manifests running", Flags: runFlags, Run: run},
		onceCommand(),
		{Name: "validate", Args: "FILE|DIR|- ...", Usage: "check manifests as the agent would", Flags: validateFlags, Run: validate},
		{Name: "config", Usage: "print what can be set, documented", Flags: configFlags, Run: printConfig},
		psCommand(),
		describeCommand(),
		eventsCommand(),
		topCommand(),
		logsCommand(),
		execCommand(),
		waitCommand(),
		restartCommand(),
		forgetCommand(),
		imagesCommand(),
		versionCommand(),
		command.Completion(),
		command.Man(Commands, Version().Version),
		command.Complete(Commands),
	}
}

func runFlags(f *pflag.FlagSet) {
	f.String("manifests", "", "the `DIR` of Pod manifests (*.yaml, *.yml, *.json)")
	f.String("runtime-endpoint", "", "the CRI runtime's socket, unix://`PATH` (default: containerd's or CRI-O's, whichever is there)")
	f.String("root", command.DefaultRoot, "the `DIR` for volumes, checkpoints and status")
	f.String("pod-logs", "/var/log/pods", "the `DIR` for the containers' logs")
	f.String("node-name", "", "the `NAME` that pods get as a suffix (default: the host's name)")
	f.String("node-labels", "", "the `LABELS` that pods can select besides the usual ones, k=v,k=v")
	f.String("listen", config.Default().Listen, "the TCP `ADDR` of the read-only endpoint; \"\" for none")
	f.String("tls-cert-file", "", "the `FILE` of the certificate that --listen speaks TLS with")
	f.String("tls-private-key-file", "", "the `FILE` of its private key")
	f.String("client-ca-file", "", "the `FILE` of the CAs whose client certificates may ask on --listen")
	f.String("token-file", "", "the `FILE` of bearer tokens that may, one a line")
	f.String("socket", command.DefaultSocket, "the `PATH` of the unix socket that the other commands use")
	f.String("resolv-conf", "/etc/resolv.conf", "the resolv.conf `PATH` that pods get their name servers from")
	f.String("cgroup-driver", "auto", "the `DRIVER` that gives pods cgroups: auto (as the runtime), cgroupfs, systemd or none")
	f.String("cgroup-root", "/", "the cgroup `PATH` that holds kubepods; it must exist")
	command.ConfigFlag(f)
	f.String("image-credential-provider-config", "", "a `FILE` of credential provider plugins, or a folder of such")
	f.String("image-credential-provider-bin-dir", "", "the `DIR` of their programs")
	f.String("log-format", "text", "the log's `FORMAT`: text or json")
	f.String("log-level", "info", "the least `LEVEL` that is logged: debug, info, warn or error")
}

// run is the agent.
func run(ctx context.Context, c *command.Call) error {
	if err := c.NoArgs("the folder goes after --manifests"); err != nil {
		return err
	}
	level := &slog.LevelVar{}
	log, err := logger(command.Text(c.Flags, "log-format"), level, c.Err)
	if err != nil {
		return command.UsageError("%v", err)
	}
	cfg, err := settings(c.Flags, log)
	if err != nil {
		return command.UsageError("%v", err)
	}
	level.Set(cfg.Level())
	again, forget := reread(c.Flags)
	defer forget()
	a, err := agent.New(cfg, nil, agent.Options{Version: Version().Version, Log: log, Level: level, Reread: again})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// logger returns a logger on w in the given format, from the given level on.
func logger(format string, level slog.Leveler, w io.Writer) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("--log-format %q: choose text or json", format)
}
