package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/check"
	"monopod/agent/cli/command"
	"monopod/agent/print"
	plans "monopod/agent/settings"
)

// validate checks the manifests of its arguments as the agent would. It exits with 2 if one is
// refused.
func validate(c *cli.Context) error {
	file := ""
	if command.GivenBy(c, "config") == "--config" {
		file = c.String("config")
	}
	if c.NArg() == 0 && file == "" {
		return command.UsageError("validate what? Give files or folders, - for standard input, or a file of settings with --config")
	}
	cfg, warnings, err := readSettings(c)
	for _, w := range warnings {
		fmt.Fprintln(c.App.ErrWriter, print.OneLine(w.Error()))
	}
	if err != nil {
		return command.UsageError("%w", err)
	}
	if len(cfg.Absent) > 0 {
		return command.UsageError("%s", plans.Lines(cfg.Absent))
	}
	if err := plans.Check(cfg); err != nil && file != "" {
		return command.UsageError("%s: %w", file, err)
	}
	if c.NArg() == 0 {
		_, err := fmt.Fprintf(c.App.Writer, "ok   %s (settings)\n", print.OneLine(file))
		return err
	}
	v, err := check.All(c.Context, cfg, check.Given{}, c.Args().Slice(), c.App.Reader)
	if err != nil {
		return command.UsageError("%v", err)
	}
	v.CheckUIDs()
	v.CheckReaders()
	v.CheckObjects(" among these files: the pod waits until there is one", true)
	n, err := check.Print(c.App.Writer, v.Files, v.NotesOfFolders()...)
	if err != nil {
		return err
	}
	if n.Problems > 0 {
		return command.UsageError("")
	}
	return nil
}
