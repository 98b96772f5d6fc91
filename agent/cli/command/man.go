package command

import (
	"fmt"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	"monopod/manifests/decode"
)

// Man is the command that prints the manual page of a table.
func Man() *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print the manual page",
		Description: `
It is roff: "monopod man | man -l -" shows it, and "monopod man >
/usr/local/share/man/man1/monopod.1" puts it in its place.`,
		Action: func(c *cli.Context) error {
			if err := NoArgs(c, ""); err != nil {
				return err
			}
			_, err := c.App.Writer.Write(manPage(c.App))
			return err
		},
	}
}

// manPage is the app as a manual page. The library's own has no descriptions,
// sorts flags, and takes what stands in their texts for markup.
func manPage(app *cli.App) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%% \"MONOPOD\" \"1\" \"\" \"monopod %s\" \"User Commands\"\n\n", markdown(app.Version))
	fmt.Fprintf(&b, "# NAME\n\nmonopod - %s\n\n", markdown(app.Usage))
	b.WriteString("# SYNOPSIS\n\n**monopod** *COMMAND* \\[*FLAGS*\\] \\[*ARGUMENTS*\\]\n\n")
	fmt.Fprintf(&b, "# DESCRIPTION\n%s\n\n# COMMANDS\n\n", markdown(app.Description))
	for _, k := range app.VisibleCommands() {
		usage := strings.ToUpper(k.Usage[:1]) + k.Usage[1:]
		fmt.Fprintf(&b, "### monopod %s\n\n%s.\n\n%s\n\n", markdown(synopsis(k)), markdown(usage), markdown(k.Description))
		for _, f := range k.VisibleFlags() {
			_, about := explain(f)
			fmt.Fprintf(&b, "**%s**\n: %s\n\n", markdown(strings.TrimSpace(head(f))), markdown(about))
		}
	}
	b.WriteString("# ANNOTATIONS\n\nOf pods, in their manifests:\n\n")
	for _, a := range decode.Annotations() {
		if a.On == decode.InManifests {
			fmt.Fprintf(&b, "**%s**\n: %s Value: %s.\n\n", markdown(a.Name), markdown(a.About), markdown(a.Values))
		}
	}
	for _, s := range manSections {
		fmt.Fprintf(&b, "# %s\n\n", s.title)
		for _, item := range s.items {
			fmt.Fprintf(&b, "**%s**\n: %s\n\n", markdown(item.name), markdown(item.text))
		}
	}
	b.WriteString("# SEE ALSO\n\n**kubectl**(1), **crictl**(1)\n")
	return []byte(exact.Replace(string(md2man.Render([]byte(b.String())))))
}

// exact has the signs of a command line shown as they are typed: roff makes
// typographic ones of those that the library leaves. It drops the library's empty
// lines, which some readers show besides those between paragraphs.
var exact = strings.NewReplacer("\n\n\n", "\n", "\n\n", "\n",
	`\-`, `\-`, "-", `\-`, `\\`, `\e`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

var escapes = strings.NewReplacer(`\`, `\\`, "`", "\\`",
	"*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`, "|", `\|`)

// markdown makes text mean itself; lines that stand in by four columns stay as they are.
func markdown(text string) string {
	lines := strings.Split(text, "\n")
	for k, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			lines[k] = escapes.Replace(line)
		}
	}
	return strings.Join(lines, "\n")
}
