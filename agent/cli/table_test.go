package cli

import (
	"testing"

	"github.com/urfave/cli/v2"
)

// Each command says what it is, and flags say what they mean.
func TestTheTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range App().Commands {
		if k.Name == "" || k.Usage == "" || k.Action == nil || seen[k.Name] {
			t.Errorf("the command %q has no name, usage or action, or is there twice", k.Name)
		}
		seen[k.Name] = true
		for _, f := range k.Flags {
			if f.(cli.DocGenerationFlag).GetUsage() == "" {
				t.Errorf("%s --%s does not say what it means", k.Name, f.Names()[0])
			}
		}
	}
}
