package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"monopod/agent"
	"monopod/manifests/decode"
)

func configFlags(f *pflag.FlagSet) {
	f.Bool("defaults", false, "print a file of settings with the default of each and what it means")
}

// config prints what can be set.
func config(_ context.Context, c *call) error {
	if defaults, _ := c.flags.GetBool("defaults"); !defaults || len(c.args) > 0 {
		return exit(exitUsage, "config what? `monopod config --defaults` prints all settings")
	}
	return agent.PrintConfigDefaults(c.out)
}

// text returns the value of a flag of text, "" where the command has no such flag.
func text(f *pflag.FlagSet, name string) string {
	value, _ := f.GetString(name)
	return value
}

// settings are those of the --config file, if there is one, under those of the
// flags that are given. What has no effect is logged.
func settings(f *pflag.FlagSet, log *slog.Logger) (agent.Config, error) {
	cfg, warnings, err := readSettings(f)
	for _, w := range warnings {
		log.Warn("a setting does not count", "err", w)
	}
	return cfg, err
}

// reread has the settings read again when the process is told SIGHUP, or the
// file changes. The signal kills again once forget is called.
func reread(f *pflag.FlagSet) (r *agent.Reread, forget func()) {
	ask := make(chan os.Signal, 1)
	signal.Notify(ask, syscall.SIGHUP)
	r = &agent.Reread{Ask: ask, Read: func() (agent.Config, []decode.Problem, error) { return readSettings(f) }}
	if f.Changed("config") {
		r.File = text(f, "config")
	}
	return r, func() { signal.Stop(ask) }
}

// readSettings returns warnings about what has no effect, too.
func readSettings(f *pflag.FlagSet) (cfg agent.Config, warnings []decode.Problem, err error) {
	cfg = agent.Config{Listen: agent.DefaultListen}
	if f.Changed("config") {
		if cfg, warnings, err = agent.ReadConfig(text(f, "config"), cfg); err != nil {
			return cfg, warnings, err
		}
	}
	if f.Changed("resolv-conf") {
		cfg.NoResolvConf = false
	}
	for name, to := range map[string]*string{
		"manifests": &cfg.Manifests, "runtime-endpoint": &cfg.Endpoint, "root": &cfg.Root, "pod-logs": &cfg.PodLogs,
		"node-name": &cfg.NodeName, "listen": &cfg.Listen, "socket": &cfg.Socket, "resolv-conf": &cfg.ResolvConf,
		"tls-cert-file": &cfg.Access.Cert, "tls-private-key-file": &cfg.Access.Key, "client-ca-file": &cfg.Access.ClientCA, "token-file": &cfg.Access.Tokens,
		"cgroup-driver": &cfg.CgroupDriver, "cgroup-root": &cfg.CgroupRoot,
		"image-credential-provider-config": &cfg.Images.CredentialProviders, "image-credential-provider-bin-dir": &cfg.Images.CredentialBin,
	} {
		if f.Changed(name) {
			*to = text(f, name)
		}
	}
	if f.Changed("node-labels") {
		labels, err := nodeLabels(text(f, "node-labels"))
		if err != nil {
			return cfg, warnings, err
		}
		cfg.NodeLabels = labels
	}
	if f.Changed("log-level") {
		if cfg.LogLevel, err = agent.LogLevel(text(f, "log-level")); err != nil {
			return cfg, warnings, fmt.Errorf("--log-level %w", err)
		}
	}
	return cfg, warnings, nil
}
