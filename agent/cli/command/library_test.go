package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// bare is a command as the library alone runs it.
type bare struct {
	app      *cli.App
	out      bytes.Buffer
	ran      bool
	args     []string
	panicked any
	err      error
}

func newBare() *bare {
	b := &bare{}
	b.app = &cli.App{Name: "monopod", Writer: &b.out, ErrWriter: &bytes.Buffer{}, UseShortOptionHandling: true, EnableBashCompletion: true,
		ExitErrHandler: func(*cli.Context, error) {},
		Commands: []*cli.Command{{
			Name: "do", Usage: "do things", Description: "Things are done.",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print as so long a text that it takes two lines"},
				&cli.Int64Flag{Name: "count", Usage: "so many"},
			},
			Action: func(c *cli.Context) error {
				b.ran, b.args = true, c.Args().Slice()
				return nil
			},
		}}}
	return b
}

func (b *bare) run(line string) *bare {
	func() {
		defer func() { b.panicked = recover() }()
		b.err = b.app.Run(strings.Fields("monopod " + line))
	}()
	return b
}

// Each row is a reason for code of ours. Where one fails, the library has been
// mended, and that code can go.
func TestWhatTheLibraryGetsWrong(t *testing.T) {
	says := func(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
	for _, row := range []struct {
		name, ours string
		still      func(*bare) bool
	}{
		{"flags behind arguments are arguments", "line", func(b *bare) bool { return len(b.run("do a --count 1").args) == 3 }},
		{"-ojson is an unknown flag", "line", func(b *bare) bool { return says(b.run("do -ojson").err, "not defined: -ojson") }},
		{"both names of a flag are refused", "line", func(b *bare) bool { return says(b.run("do -o a --output b").err, "two forms") }},
		{"a wrong number has no reason", "refused", func(b *bare) bool {
			err := b.run("do --count few").err
			return says(err, "parse error") && !says(err, "syntax")
		}},
		{"wrong flags are said on standard output", "Execute", func(b *bare) bool {
			return strings.Contains(b.run("do --cuont 1").out.String(), "Incorrect Usage")
		}},
		{"an unknown command exits with 3", "arrange", func(b *bare) bool { return ExitCode(b.run("od").err) == 3 }},
		{"an argument h is a command", "Execute", func(b *bare) bool { return !b.run("do h").ran && b.err == nil }},
		{"a name far off, or none, is proposed", "meant", func(b *bare) bool {
			return cli.SuggestCommand(b.app.Commands, "logs") == `Did you mean "do"?` && cli.SuggestCommand(b.app.Commands, "zzz") == `Did you mean ""?`
		}},
		{"completion behind -- runs the command", "Complete", func(b *bare) bool { return b.run("do -- --generate-bash-completion").ran }},
		{"completion behind -o panics", "Complete", func(b *bare) bool { return b.run("do -o --generate-bash-completion").panicked != nil }},
		{"help that cannot be written is no error", "Help", func(b *bare) bool {
			b.app.Writer = failing{}
			return b.run("--help").err == nil
		}},
		{"wrapped flags lose their column", "commandTemplate", func(b *bare) bool {
			b.run("do")
			cli.HelpPrinterCustom(&b.out, cli.CommandHelpTemplate, b.app.Commands[0], map[string]any{"wrapAt": func() int { return 50 }})
			return strings.Contains(b.out.String(), "-o value print as")
		}},
		{"the manual has no descriptions", "manPage", func(b *bare) bool {
			page, err := b.app.ToMan()
			return err == nil && !strings.Contains(page, "Things are done")
		}},
		{"the manual sorts flags", "manPage", func(b *bare) bool {
			page, err := b.app.ToMan()
			return err == nil && strings.Index(page, "count") < strings.Index(page, "output")
		}},
		{"the manual takes texts for markup", "manPage", func(b *bare) bool {
			b.app.Commands[0].Usage = "do *all* things"
			page, err := b.app.ToMan()
			return err == nil && !strings.Contains(page, "*all*")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if b := newBare(); !row.still(b) {
				t.Errorf("that is mended: %s can do without its part of it (%v, %s)", row.ours, b.err, b.out.String())
			}
		})
	}
}
