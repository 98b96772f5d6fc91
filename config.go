package main

import (
	"log/slog"
	"os"

	"github.com/urfave/cli/v2"

	"monopod/agent"
)

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Usage: "the `FILE` of settings; flags win over it, `monopod config --defaults` documents it"}
}

func configFlags() []cli.Flag {
	return []cli.Flag{&cli.BoolFlag{Name: "defaults", Usage: "print a file of settings with the default of each and what it means"}}
}

// config prints what can be set.
func config(c *cli.Context) error {
	if !c.Bool("defaults") || c.NArg() > 0 {
		return cli.Exit("config what? `monopod config --defaults` prints all settings", exitUsage)
	}
	return agent.PrintConfigDefaults(os.Stdout)
}

// settings are those of the --config file, if there is one, under those of the
// flags that are given. What has no effect is logged.
func settings(c *cli.Context, log *slog.Logger) (agent.Config, error) {
	cfg := agent.Config{Listen: agent.DefaultListen}
	if c.IsSet("config") {
		read, warnings, err := agent.ReadConfig(c.String("config"), cfg)
		if err != nil {
			return cfg, err
		}
		cfg = read
		for _, w := range warnings {
			log.Warn("a setting does not count", "err", w)
		}
	}
	if c.IsSet("resolv-conf") {
		cfg.NoResolvConf = false
	}
	for name, to := range map[string]*string{
		"manifests": &cfg.Manifests, "runtime-endpoint": &cfg.Endpoint, "root": &cfg.Root, "pod-logs": &cfg.PodLogs,
		"node-name": &cfg.NodeName, "listen": &cfg.Listen, "socket": &cfg.Socket, "resolv-conf": &cfg.ResolvConf,
		"cgroup-driver": &cfg.CgroupDriver, "cgroup-root": &cfg.CgroupRoot,
		"image-credential-provider-config": &cfg.Images.CredentialProviders, "image-credential-provider-bin-dir": &cfg.Images.CredentialBin,
	} {
		if c.IsSet(name) {
			*to = c.String(name)
		}
	}
	if c.IsSet("node-labels") {
		labels, err := nodeLabels(c.String("node-labels"))
		if err != nil {
			return cfg, err
		}
		cfg.NodeLabels = labels
	}
	return cfg, nil
}
