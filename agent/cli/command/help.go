package command

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"
)

const listTemplate = `{{.Name}}: {{.Usage}}

Usage: {{.Name}} COMMAND [FLAGS] [ARGUMENTS]

{{range .VisibleCommands}}  {{printf "%-12s" .Name}} {{wrap .Usage 15}}
{{end}}
` + "`{{.Name}} COMMAND --help` says more of each.\n"

// The flags of a command are laid out here: the library sorts them, and loses
// their columns where it wraps a line.
const commandTemplate = `{{.HelpName}}: {{wrap .Usage 9}}

Usage: monopod {{synopsis .}}
{{with .Description}}
{{wrap (trim .) 0}}
{{end}}{{with .VisibleFlags}}
Flags:
{{$at := offset (widest .) 5}}{{range .}}  {{printf "%-*s" (subtract $at 2) (head .)}}{{wrap (about .) $at}}
{{end}}{{end}}`

// Help is the command that lists the commands, or says more of one. It is run
// for --help as well.
func Help() *cli.Command {
	return &cli.Command{
		Name: "help", ArgsUsage: "[COMMAND]", Usage: "list the commands, or say more of one",
		Action: func(c *cli.Context) error {
			name := c.Args().First()
			k := c.App.Command(name)
			if k == nil && name != "" {
				return unknownCommand(c.App, name)
			}
			var b bytes.Buffer // for the library does not return what becomes of the output
			if k == nil {
				printHelp(&b, c.App, listTemplate, c.App)
			} else {
				printHelp(&b, c.App, commandTemplate, k)
			}
			_, err := c.App.Writer.Write(b.Bytes())
			return err
		},
	}
}

func printHelp(b *bytes.Buffer, app *cli.App, template string, of any) {
	cli.HelpPrinterCustom(b, template, of, map[string]any{
		"wrapAt":   func() int { return columns(app) },
		"synopsis": synopsis,
		"head":     head,
		"about":    func(f cli.Flag) string { _, about := explain(f); return about },
		"widest": func(flags []cli.Flag) string {
			return head(slices.MaxFunc(flags, func(a, b cli.Flag) int { return cmp.Compare(len(head(a)), len(head(b))) }))
		},
	})
}

// head is what stands before a flag's text, such as "-o, --output FORMAT".
func head(f cli.Flag) string {
	kind, _ := explain(f)
	head := strings.TrimSpace(names(f) + " " + kind)
	if len(f.Names()) == 1 {
		head = "    " + head
	}
	return head
}

// columns returns how many columns help may take.
func columns(app *cli.App) int {
	const most = 110
	if f, ok := app.Writer.(*os.File); ok {
		if wide, _, err := term.GetSize(int(f.Fd())); err == nil && wide > 0 {
			return min(wide, most)
		}
	}
	return most
}

// synopsis is the usage line behind the program's name.
func synopsis(k *cli.Command) string {
	line := k.Name
	if len(k.VisibleFlags()) > 0 {
		line += " [FLAGS]"
	}
	return strings.TrimSpace(line + " " + k.ArgsUsage)
}
