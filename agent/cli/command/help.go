package command

import (
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"monopod/agent/print"
)

const listTemplate = `{{.Name}}: {{.Usage}}

Usage: {{.Name}} COMMAND [FLAGS] [ARGUMENTS]

{{range .VisibleCommands}}  {{printf "%-12s" .Name}} {{wrap .Usage 15}}
{{end}}
` + "`{{.Name}} COMMAND --help` says more of each.\n"

// The flags of a command are laid out here: the library loses their columns when it wraps.
const commandTemplate = `{{.HelpName}}: {{wrap .Usage (offset .HelpName 2)}}

Usage: monopod {{synopsis .}}
{{with .Description}}
{{wrap (flow .) 0}}
{{end}}{{with .VisibleFlags}}
Flags:
{{$n := widest .}}{{$at := subtract $n -5}}{{range .}}{{$h := head . -}}
{{if gt (len $h) $n}}  {{$h}}{{nindent $at ""}}{{else}}{{printf "  %-*s   " $n $h}}{{end}}{{wrap (about .) $at}}
{{end}}{{end}}`

// Help is the command that lists the commands, or describes one. It also runs for --help, and for
// an unknown command.
func Help() *cli.Command {
	return &cli.Command{
		Name: "help", ArgsUsage: "[COMMAND]", Usage: "list the commands, or say more of one",
		Action: func(c *cli.Context) error {
			template, of := listTemplate, any(c.App)
			if c.Args().Present() {
				name := c.Args().First()
				k := c.App.Command(name)
				if k == nil {
					if err := ownArgument(c.Context, c.App, name, c.Args().Tail()); err != nil {
						return err
					}
					if here := ownWord(c.Context, c.App, name, c.Args().Tail()); here != "" {
						return UsageError("there is no `monopod %s`: %s", name, here)
					}
					near := meant(name, c.App.VisibleCommands(), func(k *cli.Command) string { return k.Name })
					return UsageError("there is no command %q%s; `monopod --help` lists them", name, near)
				}
				template, of = commandTemplate, k
			}
			screen := width(c.App.Writer)
			var b bytes.Buffer // for the library loses write errors
			cli.HelpPrinterCustom(&b, template, of, map[string]any{"wrapAt": func() int { return screen },
				"synopsis": synopsis, "head": head, "widest": func(flags []cli.Flag) int { return widest(flags, screen) },
				"flow": flow, "about": func(f cli.Flag) string { _, about := explain(f); return about }})
			_, err := c.App.Writer.Write(b.Bytes())
			return err
		},
	}
}

// flow joins the lines of each paragraph, for the library wraps lines one by one. Indented lines
// stay as they are.
func flow(text string) string {
	var b strings.Builder
	joins := false // the line before may continue
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, "\n")
		plain := line != "" && line[0] != ' '
		switch {
		case joins && plain:
			b.WriteString(" ")
		case b.Len() > 0:
			b.WriteString("\n")
		}
		b.WriteString(line)
		joins = plain
	}
	return b.String()
}

// columns is the width that help is written for, and least the smallest one that it is narrowed to.
const columns, least = 80, 40

// width returns the width of help in columns.
func width(w io.Writer) int {
	if n := (print.Format{}).On(w, os.Getenv).Columns; n > 0 {
		return max(min(n, columns), least)
	}
	return columns
}

// head is what stands before a flag's text, such as "-o, --output FORMAT".
func head(f cli.Flag) string {
	kind, _ := explain(f)
	head := strings.TrimSpace(strings.Join(dashed(f), ", ") + " " + kind)
	if len(f.Names()) == 1 {
		head = "    " + head
	}
	return head
}

// widest returns the width of the widest head, except of those that get lines of their own.
func widest(flags []cli.Flag, screen int) (n int) {
	for _, f := range flags {
		if wide := len(head(f)); wide < screen*2/5 {
			n = max(n, wide)
		}
	}
	return n
}

// synopsis is the usage line behind the program's name.
func synopsis(k *cli.Command) string {
	line := k.Name
	if len(k.VisibleFlags()) > 0 {
		line += " [FLAGS]"
	}
	return strings.TrimSpace(line + " " + k.ArgsUsage)
}
