// Package command is what the command line adds to its library: flags in any order, exit codes,
// help for narrow screens, completion and the manual page.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
)

// Exit codes of every command.
const (
	ExitFailed = 1
	ExitUsage  = 2   // wrong flags, or invalid manifests
	ExitDown   = 3   // the agent does not run
	ExitLate   = 124 // --timeout was over

	ExitInterrupted = 130 // as of a shell's command after Ctrl-C
)

// Down returns err with its exit code if it is that no agent runs.
func Down(err error) error {
	if errors.Is(err, client.ErrDown) {
		return cli.Exit(err, ExitDown)
	}
	return err
}

// Waited gives the error of a command that waits its exit code.
func Waited(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, client.ErrDown):
		return cli.Exit(err, ExitDown)
	case errors.Is(err, client.ErrTimeout):
		return cli.Exit(err, ExitLate)
	case err != nil && ctx.Err() != nil:
		return cli.Exit("", ExitInterrupted)
	}
	return err
}

// UsageError is about an invalid command line, or about what it names.
func UsageError(format string, args ...any) error {
	return cli.Exit(fmt.Errorf(format, args...), ExitUsage)
}

// ExitCode returns the exit code of the process for err. The errors that err wraps do not count:
// they may be the end of another process.
func ExitCode(err error) int {
	switch e := err.(type) {
	case nil:
		return 0
	case cli.ExitCoder:
		return e.ExitCode()
	}
	return ExitFailed
}

// Execute runs the command of the app that args name. They are those behind the program's name.
func Execute(ctx context.Context, app *cli.App, args []string) error {
	// The library would print errors itself, and end the process.
	app.ExitErrHandler = func(*cli.Context, error) {}
	// It would cut the values of flags that may be repeated at their commas.
	app.DisableSliceFlagSeparator = true
	app.HideHelp, app.HideVersion = true, true
	for _, k := range app.Commands {
		// It would take an argument "help" or "h" for a command of its own, even a pod's name.
		k.HideHelp = true
		// It would print errors in flags to standard output. The line has checked them, so this is
		// for kinds of flags that it does not know.
		k.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return wrongFlags(k, err) }
	}
	words := args
	args, err := arrange(ctx, app, args)
	if err != nil {
		return err
	}
	for _, v := range variables {
		if os.Getenv(v.name) == "" {
			os.Unsetenv(v.name) // the library would take an empty one for a value
		}
	}
	err = ofVariable(app, ofDown(app.RunContext(ctx, args)))
	if errors.Is(err, client.ErrNoPod) {
		return cmp.Or(ownArgument(ctx, app, words[0], words[1:]), err)
	}
	return err
}

// ofDown gives the error that no agent runs its exit code, for any command. A command that has
// chosen a code keeps it.
func ofDown(err error) error {
	if _, chosen := err.(cli.ExitCoder); chosen || !client.IsDown(err) {
		return err
	}
	return cli.Exit(err, ExitDown)
}

// ofVariable names the variable that gave the value that an error is about.
func ofVariable(app *cli.App, err error) error {
	about := (*client.FlagError)(nil)
	if !errors.As(err, &about) {
		return err
	}
	typed, _ := app.Metadata["typed"].([]string)
	names := Variables(about.Flag)
	if names == nil || os.Getenv(names[0]) == "" || slices.ContainsFunc(typed, func(word string) bool { return strings.HasPrefix(word, "--"+about.Flag+"=") }) {
		return err
	}
	return cli.Exit(fmt.Errorf("%w; --%s is from the variable %s", err, about.Flag, names[0]), ExitCode(err))
}

// arrange finds the command and puts its flags first, by their long names, in the form that the
// library understands.
func arrange(ctx context.Context, app *cli.App, args []string) ([]string, error) {
	name, words := "help", args
	if len(args) > 0 {
		name, words = args[0], args[1:]
	}
	switch name {
	case "--help", "-h":
		name, words = "help", nil
	case "--version":
		name, words = "version", nil
	}
	if strings.HasPrefix(name, "-") {
		return nil, UsageError("the flag %s stands before the command; flags go behind it, as in `monopod ps -o wide`", name)
	}
	k := app.Command(name)
	if k == nil {
		return slices.Concat([]string{app.Name, "help", "--", name}, words), nil // which prints that
	}
	if !strings.Contains(k.ArgsUsage, "POD") { // else one may have that name
		if err := ownArgument(ctx, app, name, words); err != nil {
			return nil, err
		}
	}
	l := line{command: k, dash: -1}
	for len(words) > 0 {
		var err error
		if words, err = l.take(words); err != nil {
			return nil, wrongFlags(k, err)
		}
	}
	if l.help {
		return []string{app.Name, "help", "--", name}, nil
	}
	app.Metadata = map[string]any{"dash": l.dash, "typed": l.flags}
	return slices.Concat([]string{app.Name, name}, l.flags, []string{"--"}, l.args), nil
}

func wrongFlags(k *cli.Command, err error) error {
	return UsageError("%v; `monopod %s --help` lists the flags", err, k.Name)
}

// Dash returns the number of arguments before "--"; -1: there was none.
func Dash(c *cli.Context) int { return c.App.Metadata["dash"].(int) }

// NoArgs rejects arguments. The hint, such as "; they go elsewhere", may be empty.
func NoArgs(c *cli.Context, hint string) error {
	if c.Args().Present() {
		return UsageError("%s takes no arguments, got %q%s", c.Command.Name, c.Args().First(), hint)
	}
	return nil
}
