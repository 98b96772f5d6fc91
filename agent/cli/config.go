package cli

import (
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"monopod/agent"
	"monopod/agent/cli/command"
	"monopod/agent/config"
	"monopod/manifests/decode"
)

// printConfig prints what can be set.
func printConfig(c *cli.Context) error {
	if !c.Bool("defaults") || c.Args().Present() {
		return command.UsageError("config what? `monopod config --defaults` prints all settings")
	}
	return config.PrintDefaults(c.App.Writer)
}

// settings are those of the --config file, if there is one, under those of the
// flags that are given. What has no effect is logged.
func settings(c *cli.Context, log *slog.Logger) (config.Config, error) {
	cfg, warnings, err := readSettings(c)
	for _, w := range warnings {
		log.Warn("a setting does not count", "err", w)
	}
	return cfg, err
}

func readSettings(c *cli.Context) (config.Config, []decode.Problem, error) {
	return config.Read(func(flag string) (string, string) {
		if list := c.StringSlice(flag); list != nil {
			return strings.Join(list, config.ListSeparator), command.GivenBy(c, flag)
		}
		return c.String(flag), command.GivenBy(c, flag)
	})
}

// reread has the settings read again when the process is told SIGHUP, or the
// file changes. The signal kills again once forget is called.
func reread(c *cli.Context) (r *agent.Reread, forget func()) {
	ask := make(chan os.Signal, 1)
	signal.Notify(ask, syscall.SIGHUP)
	r = &agent.Reread{Ask: ask, Read: func() (config.Config, []decode.Problem, error) { return readSettings(c) }}
	if c.IsSet("config") {
		r.File = c.String("config")
	}
	return r, func() { signal.Stop(ask) }
}
