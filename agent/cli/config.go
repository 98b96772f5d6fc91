package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"monopod/agent"
	"monopod/agent/cli/command"
	"monopod/agent/config"
	"monopod/manifests/decode"
)

func configFlags(f *pflag.FlagSet) {
	f.Bool("defaults", false, "print a file of settings with the default of each and what it means")
}

// printConfig prints what can be set.
func printConfig(_ context.Context, c *command.Call) error {
	if defaults, _ := c.Flags.GetBool("defaults"); !defaults || len(c.Args) > 0 {
		return command.UsageError("config what? `monopod config --defaults` prints all settings")
	}
	return config.PrintDefaults(c.Out)
}

// settings are those of the --config file, if there is one, under those of the
// flags that are given. What has no effect is logged.
func settings(f *pflag.FlagSet, log *slog.Logger) (config.Config, error) {
	cfg, warnings, err := readSettings(f)
	for _, w := range warnings {
		log.Warn("a setting does not count", "err", w)
	}
	return cfg, err
}

func readSettings(f *pflag.FlagSet) (config.Config, []decode.Problem, error) {
	return config.Read(func(flag string) (string, bool) { return command.Text(f, flag), f.Changed(flag) })
}

// reread has the settings read again when the process is told SIGHUP, or the
// file changes. The signal kills again once forget is called.
func reread(f *pflag.FlagSet) (r *agent.Reread, forget func()) {
	ask := make(chan os.Signal, 1)
	signal.Notify(ask, syscall.SIGHUP)
	r = &agent.Reread{Ask: ask, Read: func() (config.Config, []decode.Problem, error) { return readSettings(f) }}
	if f.Changed("config") {
		r.File = command.Text(f, "config")
	}
	return r, func() { signal.Stop(ask) }
}
