package command

import (
	"path/filepath"
	"testing"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/clitest"
)

func TestManPageOfATable(t *testing.T) {
	clitest.Page(t, filepath.Join("..", "..", "..", "testdata", "cli", "man.1"), string(manPage(&cli.App{
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
	})))
}
