// Package command makes a command line of a table of commands.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// Command is a row of the table of commands: parsing, running, help, completion
// and the man page are derived from it.
type Command struct {
	Name   string
	Args   string                             // as the usage line shows them, such as "POD [CONTAINER]"
	Usage  string                             // half a sentence for the list of commands
	About  string                             // further text of --help, wrapped at 100 columns; may be empty
	hidden bool                               // left out of lists
	Flags  func(*pflag.FlagSet)               // declares the flags; nil: none
	Run    func(context.Context, *Call) error // args were not counted
}

// Call is a command as it was called.
type Call struct {
	Args  []string       // without the flags
	Dash  int            // how many of args stood before "--"; -1: there was none
	Flags *pflag.FlagSet // parsed
	In    io.Reader
	Out   *os.File
	Err   io.Writer
}

// Exit codes of every command.
const (
	ExitFailed = 1
	ExitUsage  = 2 // wrong flags, or invalid manifests
)

// exitError makes the process end with a code, and say text if there is any.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// Exit returns an error that makes the process end with the code; an empty
// format says nothing.
func Exit(code int, format string, args ...any) error {
	return &exitError{code, fmt.Sprintf(format, args...)}
}

// UsageError is about a command line that cannot be meant, or about what it
// names.
func UsageError(format string, args ...any) error { return Exit(ExitUsage, format, args...) }

// ExitCode returns what the process ends with after err.
func ExitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.code
	}
	return ExitFailed
}

// Execute finds the command in the table and runs it. args are those behind the
// program's name.
func Execute(ctx context.Context, table []*Command, args []string, c *Call) error {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		return listCommands(c.Out, table)
	}
	name := args[0]
	switch {
	case name == "help" && len(args) == 1:
		return listCommands(c.Out, table)
	case name == "help":
		name, args = args[1], []string{args[1], "--help"}
	case name == "--version":
		name, args = "version", []string{"version"}
	}
	i := slices.IndexFunc(table, func(c *Command) bool { return c.Name == name })
	switch {
	case i < 0 && strings.HasPrefix(name, "-"):
		return UsageError("the flag %s stands before the command; flags go behind it, as in `monopod ps -o wide`", name)
	case i < 0:
		return UsageError("there is no command %q; `monopod --help` lists them", name)
	}
	return table[i].execute(ctx, args[1:], c)
}

// execute parses the arguments and runs the command.
func (k *Command) execute(ctx context.Context, args []string, c *Call) error {
	c.Flags = k.flagSet()
	if err := c.Flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return k.help(c.Out, columns(c.Out))
	} else if err != nil {
		return UsageError("%v; `monopod %s --help` lists the flags", err, k.Name)
	}
	c.Args, c.Dash = c.Flags.Args(), c.Flags.ArgsLenAtDash()
	return k.Run(ctx, c)
}

// flagSet returns the command's flags, not parsed yet.
func (k *Command) flagSet() *pflag.FlagSet {
	f := pflag.NewFlagSet(k.Name, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	if k.Flags != nil {
		k.Flags(f)
	}
	return f
}

// NoArgs refuses arguments, with a hint where what they mean goes.
func (c *Call) NoArgs(hint string) error {
	if len(c.Args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s takes no arguments, got %q", c.Flags.Name(), c.Args[0])
	if hint != "" {
		text += "; " + hint
	}
	return UsageError("%s", text)
}

func listCommands(w io.Writer, table []*Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "monopod: %s\n\nUsage: monopod COMMAND [FLAGS] [ARGUMENTS]\n\n", purpose)
	for _, k := range table {
		if !k.hidden {
			fmt.Fprintf(&b, "  %-12s %s\n", k.Name, k.Usage)
		}
	}
	b.WriteString("\n`monopod COMMAND --help` says more of each.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// help prints the command's usage, its text and its flags.
func (k *Command) help(w io.Writer, columns int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "monopod %s: %s\n\nUsage: monopod %s\n", k.Name, k.Usage, k.synopsis())
	if k.About != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(k.About))
	}
	if flags := k.flagSet(); flags.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags.FlagUsagesWrapped(columns))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// columns returns how many columns help may take.
func columns(out *os.File) int {
	const most = 110
	if wide, _, err := term.GetSize(int(out.Fd())); err == nil && wide > 0 {
		return min(wide, most)
	}
	return most
}

// synopsis is the usage line behind the program's name.
func (k *Command) synopsis() string {
	line := k.Name
	if k.flagSet().HasAvailableFlags() {
		line += " [FLAGS]"
	}
	if k.Args != "" {
		line += " " + k.Args
	}
	return line
}
