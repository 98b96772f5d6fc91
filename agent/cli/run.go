package cli

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/urfave/cli/v2"

	"monopod/agent"
	"monopod/agent/cli/command"
	"monopod/agent/config"
)

func runFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "manifests", Usage: "the `DIR` of Pod manifests (*.yaml, *.yml, *.json)"},
		&cli.StringFlag{Name: "runtime-endpoint",
			Usage: "the CRI runtime's socket, unix://`PATH` (default: containerd's or CRI-O's, whichever is there)"},
		&cli.StringFlag{Name: "root", Value: command.DefaultRoot,
			Usage: "the `DIR` for volumes, checkpoints and status"},
		&cli.StringFlag{Name: "pod-logs", Value: "/var/log/pods", Usage: "the `DIR` for the containers' logs"},
		nodeNameFlag(),
		&cli.StringFlag{Name: "node-labels",
			Usage: "the `LABELS` that pods can select besides the usual ones, k=v,k=v"},
		&cli.StringFlag{Name: "listen", Value: config.Default().Listen,
			Usage: "the TCP `ADDR` of the read-only endpoint; \"\" for none"},
		&cli.StringFlag{Name: "tls-cert-file", Usage: "the `FILE` of the certificate that --listen speaks TLS with"},
		&cli.StringFlag{Name: "tls-private-key-file", Usage: "the `FILE` of its private key"},
		&cli.StringFlag{Name: "client-ca-file",
			Usage: "the `FILE` of the CAs whose client certificates may ask on --listen"},
		&cli.StringFlag{Name: "token-file", Usage: "the `FILE` of bearer tokens that may, one a line"},
		&cli.StringFlag{Name: "socket", Value: command.DefaultSocket,
			Usage: "the `PATH` of the unix socket that the other commands use"},
		&cli.StringFlag{Name: "resolv-conf", Value: "/etc/resolv.conf",
			Usage: "the resolv.conf `PATH` that pods get their name servers from"},
		&cli.StringFlag{Name: "cgroup-driver", Value: "auto",
			Usage: "the `DRIVER` that gives pods cgroups: auto (as the runtime), cgroupfs, systemd or none"},
		&cli.StringFlag{Name: "cgroup-root", Value: "/", Usage: "the cgroup `PATH` that holds kubepods; it must exist"},
		command.ConfigFlag(),
		&cli.StringFlag{Name: "image-credential-provider-config",
			Usage: "a `FILE` of credential provider plugins, or a folder of such"},
		&cli.StringFlag{Name: "image-credential-provider-bin-dir", Usage: "the `DIR` of their programs"},
		&cli.StringFlag{Name: "log-format", Value: "text", Usage: "the log's `FORMAT`: text or json"},
		&cli.StringFlag{Name: "log-level", Value: "info",
			Usage: "the least `LEVEL` that is logged: debug, info, warn or error"},
	}
}

func nodeNameFlag() cli.Flag {
	return &cli.StringFlag{Name: "node-name", Usage: "the `NAME` that pods get as a suffix (default: the host's name)"}
}

// run is the agent.
func run(c *cli.Context) error {
	if err := command.NoArgs(c, "the folder goes after --manifests"); err != nil {
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
	a, err := agent.New(cfg, nil, agent.Options{Version: Version().Version, Log: log, Level: level, Reread: again})
	if err != nil {
		return err
	}
	return a.Run(c.Context)
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
