package command

import (
	"fmt"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	"monopod/agent/config"
	"monopod/manifests/annotations"
)

// Man is the command that prints the manual pages of a table.
func Man() *cli.Command {
	return &cli.Command{
		Name: "man", ArgsUsage: "[settings | annotations]", Usage: "print the manual page, or that of settings or annotations",
		Description: `
It is roff: "monopod man | man -l -" shows it, and "monopod man >
/usr/local/share/man/man1/monopod.1" puts it in its place. That of settings is
monopod.yaml.5, and that of annotations monopod-annotations.7.`,
		Action: func(c *cli.Context) error {
			text, err := manText(c.App, c.Args().Slice())
			if err != nil {
				return err
			}
			_, err = c.App.Writer.Write(roff(text))
			return err
		},
	}
}

// manText returns the requested page, as markdown.
func manText(app *cli.App, asked []string) (string, error) {
	switch strings.Join(asked, " ") {
	case "":
		return manPage(app), nil
	case "settings":
		return settingsPage(app.Version), nil
	case "annotations":
		return annotationsPage(app.Version), nil
	}
	return "", UsageError("man %q: choose settings or annotations, or nothing for the commands", strings.Join(asked, " "))
}

// roff returns a page in the format of manual pages.
func roff(text string) []byte { return []byte(exact.Replace(string(md2man.Render([]byte(text))))) }

// manTitle is the beginning of a page, with its subject.
func manTitle(page, section, version, kind, about string) string {
	return fmt.Sprintf("%% \"%s\" \"%s\" \"\" \"monopod %s\" \"%s\"\n\n# NAME\n\n%s - %s\n\n", strings.ToUpper(page), section, markdown(version), kind, page, markdown(about))
}

// manItem is a paragraph under a name.
func manItem(name, text string) string {
	return fmt.Sprintf("**%s**\n: %s\n\n", markdown(name), markdown(text))
}

// manPage is the app as a manual page. The library's own has no descriptions, sorts flags, and
// takes their texts for markup.
func manPage(app *cli.App) string {
	var b strings.Builder
	b.WriteString(manTitle("monopod", "1", app.Version, "User Commands", app.Usage))
	b.WriteString("# SYNOPSIS\n\n**monopod** *COMMAND* \\[*FLAGS*\\] \\[*ARGUMENTS*\\]\n\n")
	fmt.Fprintf(&b, "# DESCRIPTION\n%s\n\n# COMMANDS\n\n", markdown(app.Description))
	for _, k := range app.VisibleCommands() {
		usage := strings.ToUpper(k.Usage[:1]) + k.Usage[1:]
		fmt.Fprintf(&b, "### monopod %s\n\n%s.\n\n%s\n\n", markdown(synopsis(k)), markdown(usage), markdown(k.Description))
		for _, f := range k.VisibleFlags() {
			_, about := explain(f)
			b.WriteString(manItem(strings.TrimSpace(head(f)), about))
		}
	}
	for _, s := range manSections {
		fmt.Fprintf(&b, "# %s\n\n", s.title)
		for _, item := range s.items {
			b.WriteString(manItem(item.name, item.text))
		}
	}
	b.WriteString("# SEE ALSO\n\n**monopod.yaml**(5), **monopod-annotations**(7), **kubectl**(1), **crictl**(1)\n")
	return b.String()
}

// settingsPage is the table of settings as a manual page.
func settingsPage(version string) string {
	var b strings.Builder
	b.WriteString(manTitle("monopod.yaml", "5", version, "File Formats", "settings of monopod"))
	b.WriteString("# DESCRIPTION\n\nThe file that **monopod run --config** reads, /etc/monopod/config.yaml with the package. Fields are named and mean as in KubeletConfiguration but those marked (ours). A dot leads into an object. A flag wins over the file.\n\n# SETTINGS\n\n")
	for _, s := range config.Settings() {
		text := s.About + " Default: " + s.Default + "."
		if s.Flag != "" {
			text += " Flag: " + s.Flag + "."
		}
		if s.Live {
			text += " A new value counts at once."
		}
		b.WriteString(manItem(s.Name, text))
	}
	b.WriteString("# SEE ALSO\n\n**monopod**(1), **monopod-annotations**(7)\n")
	return b.String()
}

// annotationsPage is the table of annotations as a manual page.
func annotationsPage(version string) string {
	var b strings.Builder
	b.WriteString(manTitle("monopod-annotations", "7", version, "Miscellaneous", "annotations that monopod reads and writes"))
	for _, on := range annotations.Places() {
		fmt.Fprintf(&b, "# %s\n\n%s:\n\n", strings.ToUpper(on.Where), markdown(on.Title))
		for _, a := range annotations.All() {
			if a.On == on.Where {
				b.WriteString(manItem(a.Name, a.About+" Value: "+a.Values+"."))
			}
		}
	}
	b.WriteString("# SEE ALSO\n\n**monopod**(1), **monopod.yaml**(5)\n")
	return b.String()
}

// exact shows the characters of a command line as they are typed: roff makes typographic ones of
// those that the library leaves. It drops the library's empty lines, which some readers show
// besides those between paragraphs.
var exact = strings.NewReplacer("\n\n\n", "\n", "\n\n", "\n",
	`\-`, `\-`, "-", `\-`, `\\`, `\e`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

var escapes = strings.NewReplacer(`\`, `\\`, "`", "\\`",
	"*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`, "|", `\|`)

// markdown escapes text; lines indented by four columns stay as they are.
func markdown(text string) string {
	lines := strings.Split(text, "\n")
	for k, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			lines[k] = escapes.Replace(line)
		}
	}
	return strings.Join(lines, "\n")
}
