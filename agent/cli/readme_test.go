package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/command"
)

// What the README has people type is understood: the command is there, with its flags.
func TestTheReadmeTypesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range regexp.MustCompile("(?m)(?:^ +|`|sudo |- )(?:\\./)?monopod ([a-z][^`\\n#]*)").FindAllStringSubmatch(strings.ReplaceAll(string(text), "(monopod completion\nbash)", ""), -1) {
		line, _, _ := strings.Cut(m[1], "|-")
		line, _, _ = strings.Cut(line, " | ")
		app := App()
		for _, k := range app.Commands {
			k.Action = func(*cli.Context) error { n++; return nil }
		}
		if err := command.Execute(t.Context(), app, strings.Fields(line)); err != nil {
			t.Errorf("monopod %s: %v", line, err)
		}
	}
	if n < 15 {
		t.Errorf("of the README %d lines were found, which are too few", n)
	}
}
