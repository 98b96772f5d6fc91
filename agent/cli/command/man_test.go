package command

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/clitest"
	"monopod/agent/config"
	"monopod/manifests/annotations"
)

func TestManPageOfATable(t *testing.T) {
	clitest.Page(t, filepath.Join("..", "..", "..", "testdata", "cli", "man.1"), string(roff(manPage(&cli.App{
		Version: "v1.2.3", Usage: "run things", Description: "\nWhat *goes* in <there> & comes out.",
		Commands: []*cli.Command{
			{Name: "do", ArgsUsage: "THING ... | [--all]", Usage: `do "things"`, Description: "\nThings are done.\n.so they are, and `quoted`.\n\nC:\\back ~slash^ isn't _said_:\n\n    0   it was *done*\n    1   it was not",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "loud", Aliases: []string{"l"}, Usage: "shout"},
					&cli.StringFlag{Name: "in-voice", Value: "low", Usage: "speak in a `VOICE` (*.wav)"},
					&cli.StringFlag{Name: "secret", Hidden: true, Usage: "not shown"},
				}},
			{Name: "shy", Usage: "not shown", Hidden: true},
		},
	}))))
}

// The pages of settings and annotations have all of the tables, each with its sentences.
func TestManPagesOfSettingsAndAnnotations(t *testing.T) {
	unroffed := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(ti`, "~", `\&`, "", `\e`, `\`)
	settings, page := unroffed.Replace(string(roff(settingsPage("v1.2.3")))), unroffed.Replace(string(roff(annotationsPage("v1.2.3"))))
	for _, s := range config.Settings() {
		if item := fmt.Sprintf(".TP\n\\fB%s\\fP\n%s Default: %s.", s.Name, s.About, s.Default); !strings.Contains(settings, item) {
			t.Errorf("the settings do not have %s", item)
		}
	}
	for _, a := range annotations.All() {
		if item := fmt.Sprintf(".TP\n\\fB%s\\fP\n%s Value: %s.\n", a.Name, a.About, a.Values); !strings.Contains(page, item) {
			t.Errorf("the annotations do not have %s", item)
		}
	}
}
