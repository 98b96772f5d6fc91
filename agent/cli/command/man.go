package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Man is the command that prints the manual page of a table.
func Man(table func() []*Command, version string) *Command {
	return &Command{
		Name: "man", Usage: "print the manual page",
		About: `
It is roff: "monopod man | man -l -" shows it, and "monopod man >
/usr/local/share/man/man1/monopod.1" puts it in its place.`,
		Run: func(_ context.Context, c *Call) error {
			if err := c.NoArgs(""); err != nil {
				return err
			}
			_, err := io.WriteString(c.Out, manPage(table(), version))
			return err
		},
	}
}

// manPage is the table as a manual page, in the macros of man(7).
func manPage(table []*Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH MONOPOD 1 \"\" %s \"User Commands\"\n", roffArg("monopod "+version))
	fmt.Fprintf(&b, ".SH NAME\nmonopod \\- %s\n", roff(purpose))
	b.WriteString(".SH SYNOPSIS\n.B monopod\n.I COMMAND\n[\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]\n.SH DESCRIPTION\n")
	b.WriteString(roffText(manDescription))
	b.WriteString(".SH COMMANDS\n")
	for _, k := range table {
		if !k.hidden {
			k.man(&b)
		}
	}
	for _, s := range manSections {
		fmt.Fprintf(&b, ".SH %s\n", s.title)
		for _, item := range s.items {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s", roffLine(item.name), roffText(item.text))
		}
	}
	b.WriteString(".SH SEE ALSO\n.BR kubectl (1),\n.BR crictl (1)\n")
	return b.String()
}

// man writes what the page has of the command.
func (k *Command) man(b *strings.Builder) {
	fmt.Fprintf(b, ".SS %s\n%s", roffArg("monopod "+k.synopsis()), roffText(strings.ToUpper(k.Usage[:1])+k.Usage[1:]+"."))
	if k.About != "" {
		b.WriteString(".PP\n" + roffText(k.About))
	}
	k.flagSet().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, about := pflag.UnquoteUsage(f)
		head := ".B " + roffLine(name)
		if kind != "" {
			head = fmt.Sprintf(".BI %s \" %s\"", roffArg(name), roff(kind))
		}
		if about = strings.TrimSpace(about); f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "[]" {
			about += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(b, ".TP\n%s\n%s", head, roffText(about))
	})
}

// roffText writes paragraphs, which empty lines divide, in lines of the page's source.
func roffText(text string) string {
	const most = 78
	var b strings.Builder
	for k, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if k > 0 {
			b.WriteString(".PP\n")
		}
		line := ""
		for _, word := range strings.Fields(paragraph) {
			switch word = roff(word); {
			case line == "":
				line = roffStart(word)
			case len(line)+1+len(word) > most:
				b.WriteString(line + "\n")
				line = roffStart(word)
			default:
				line += " " + word
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// roff makes text mean itself within a line.
func roff(text string) string { return roffEscapes.Replace(text) }

// roffLine makes text mean itself at the beginning of a line, too.
func roffLine(text string) string { return roffStart(roff(text)) }

// roffStart keeps a line from being a request.
func roffStart(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}

// roffArg makes text one argument of a macro.
func roffArg(text string) string { return `"` + roff(text) + `"` }
