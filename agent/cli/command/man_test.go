package command

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"monopod/agent/cli/clitest"
)

func TestManPageOfATable(t *testing.T) {
	nothing := func(context.Context, *Call) error { return nil }
	clitest.Page(t, filepath.Join("..", "..", "..", "testdata", "cli", "man.1"), manPage([]*Command{
		{Name: "do", Args: "THING ...", Usage: `do "things"`, About: "\nThings are done.\n.so they are, and this is a line of a length at which the page's source begins another.\n\nC:\\back ~slash^ isn't `quoted`.",
			Run: nothing, Flags: func(f *pflag.FlagSet) {
				f.BoolP("loud", "l", false, "shout")
				f.String("in-voice", "low", "speak in a `VOICE`")
				f.String("secret", "", "nobody sees me")
				f.MarkHidden("secret")
			}},
		{Name: "shy", Usage: "nobody sees me", hidden: true, Run: nothing},
	}, "v1.2.3"))
}
