package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"monopod/agent"
	"monopod/agent/cli/command"
	"monopod/agent/config"
)

func runFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "manifests", KeepSpace: true, EnvVars: command.Variables("manifests"),
			Usage: "the `DIR` of Pod manifests (*.yaml, *.yml, *.json); may be repeated, and later ones win"},
		text("manifest-url", "", "the `URL` that gives Pod manifests, too; {node} in it is the node's name"),
		&cli.StringSliceFlag{Name: "manifest-url-header", KeepSpace: true,
			Usage: "send it the header `NAME=VALUE`, which others see in the list of processes; may be repeated"},
		text("runtime-endpoint", "",
			"the CRI runtime's socket, unix://`PATH` (default: containerd's or CRI-O's, whichever is there)"),
		&cli.BoolFlag{Name: "managed-runtime", EnvVars: command.Variables("managed-runtime"), Usage: "start a containerd of monopod's own"},
		text("root", command.DefaultRoot, "the `DIR` for volumes, checkpoints and status"),
		text("pod-logs", "/var/log/pods", "the `DIR` for the containers' logs"),
		nodeNameFlag(),
		text("node-ip", "", "the `ADDR` of this machine that pods learn, or one of each family (default: the default route's)"),
		text("node-labels", "", "the `LABELS` that pods can select besides the usual ones, k=v,k=v"),
		text("listen", config.Default().Listen, "the TCP `ADDR` of the read-only endpoint; \"\" for none"),
		text("tls-cert-file", "", "the `FILE` of the certificate that --listen speaks TLS with"),
		text("tls-private-key-file", "", "the `FILE` of its private key"),
		text("client-ca-file", "", "the `FILE` of the CAs whose client certificates may ask on --listen"),
		text("token-file", "", "the `FILE` of bearer tokens that may, one a line"),
		text("socket", command.DefaultSocket, "the `PATH` of the unix socket that the other commands use"),
		text("resolv-conf", "/etc/resolv.conf", "the resolv.conf `PATH` that pods get their name servers from"),
		one("cgroup-driver", "auto", "the `DRIVER` that gives pods cgroups, auto as the runtime", "auto", "cgroupfs", "systemd", "none"),
		text("cgroup-root", "/", "the cgroup `PATH` that holds kubepods; it must exist"),
		command.ConfigFlag(),
		text("image-dir", "", "the `DIR` of image archives, or several with commas between (default: images in --root)"),
		text("image-credential-provider-config", "", "a `FILE` of credential provider plugins, or a folder of such"),
		text("image-credential-provider-bin-dir", "", "the `DIR` of their programs"),
		one("log-format", "text", "the log's `FORMAT`", "text", "json"),
		one("log-level", "info", "the least `LEVEL` that is logged", levels...),
	}
}

func nodeNameFlag() cli.Flag {
	return text("node-name", "", "the `NAME` that pods get as a suffix (default: the host's name)")
}

// text is a flag of text, which the settings parse.
func text(name, value, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, EnvVars: command.Variables(name)}
}

// levels are the levels of the log.
var levels = []string{"debug", "info", "warn", "error"}

// one is a flag with one of a few words, which the settings parse.
func one(name, value, usage string, words ...string) cli.Flag {
	return command.Choice(&cli.StringFlag{Name: name, Value: value, Usage: usage, EnvVars: command.Variables(name)}, words...)
}

// run runs the agent.
func run(c *cli.Context) error {
	if err := command.NoArgs(c, "; the folder goes after --manifests"); err != nil {
		return err
	}
	level := &slog.LevelVar{}
	log, err := logger(c.String("log-format"), level, c.App.ErrWriter)
	if err != nil {
		return command.UsageError("%v", err)
	}
	cfg, err := settings(c, log)
	if err != nil {
		return command.UsageError("%v", err)
	}
	level.Set(cfg.Level())
	again, forget := reread(c)
	defer forget()
	power := make(chan os.Signal, 1)
	signal.Notify(power, syscall.SIGPWR)
	defer signal.Stop(power)
	a, err := agent.New(cfg, nil, agent.Options{Version: Version().Version, Log: log, Level: level, Reread: again, Power: power,
		Name: func(setting string) string { return nameOf(c, setting) }})
	if wrong := (*agent.SettingsError)(nil); errors.As(err, &wrong) {
		return command.UsageError("%w", err)
	}
	if err != nil {
		return err
	}
	sayEmpty(log, cfg.Manifests, c.String("config"))
	return a.Run(c.Context)
}

// nameOf returns the name of a setting for the person who gave it: the flag, unless there is a
// settings file and the flag is not given.
func nameOf(c *cli.Context, setting string) string {
	flag := config.FlagOf(setting)
	if flag == "" || c.IsSet("config") && !c.IsSet(strings.TrimPrefix(flag, "--")) {
		return setting
	}
	return flag
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
