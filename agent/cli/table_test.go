package cli

import (
	"testing"

	"github.com/spf13/pflag"
)

// Each command says what it is, and flags say what they mean.
func TestTheTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Commands() {
		if k.Name == "" || k.Usage == "" || k.Run == nil || seen[k.Name] {
			t.Errorf("the command %q has no name, usage or run, or is there twice", k.Name)
		}
		seen[k.Name] = true
		if k.Flags == nil {
			continue
		}
		flags := pflag.NewFlagSet(k.Name, pflag.ContinueOnError)
		k.Flags(flags)
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s does not say what it means", k.Name, f.Name)
			}
		})
	}
}
