package command

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestOutputsAreChosenFromThoseThereAre(t *testing.T) {
	for _, row := range []struct{ text, given, err string }{
		{"wide, json or yaml", "wide", ""},
		{"wide, json or yaml", "yaml", ""},
		{"json or yaml: the v1 Pod", "json", ""},
		{"json or yaml: the v1 Pod", "wide", `invalid argument "wide" for "-o, --output" flag: choose json or yaml`},
		{"wide, json or yaml", "", `invalid argument "" for "-o, --output" flag: choose wide, json or yaml`},
		{"wide, json or yaml", "wide, json", `invalid argument "wide, json" for "-o, --output" flag: choose wide, json or yaml`},
	} {
		var got string
		f := pflag.NewFlagSet("x", pflag.ContinueOnError)
		OutputFlag(f, &got, row.text)
		err := f.Parse([]string{"-o", row.given})
		if row.err == "" && (err != nil || got != row.given) || row.err != "" && (err == nil || err.Error() != row.err) {
			t.Errorf("-o %q of %q: %q, %v", row.given, row.text, got, err)
		}
	}
}
