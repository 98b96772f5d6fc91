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

// printConfig prints the possible settings.
func printConfig(c *cli.Context) error {
	if !c.Bool("defaults") || c.Args().Present() {
		return command.UsageError("config what? `monopod config --defaults` prints all settings")
	}
	return config.PrintDefaults(c.App.Writer)
}

// settings returns the settings of the --config file, if there is one, overridden by the given
// flags. What has no effect is logged.
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

// reread makes the agent read the settings again when the process receives SIGHUP, or the file
// changes. The signal kills again once forget is called.
func reread(c *cli.Context) (r *agent.Reread, forget func()) {
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	r = &agent.Reread{Ask: hups, Read: func() (config.Config, []decode.Problem, error) { return readSettings(c) }}
	if c.IsSet("config") {
		r.File = c.String("config")
	}
	return r, func() { signal.Stop(hups) }
}
