package command

import (
	"testing"

	"github.com/urfave/cli/v2"
)

func TestOutputsAreChosenFromThoseThereAre(t *testing.T) {
	const of = "; `monopod x --help` lists the flags"
	for _, row := range []struct{ text, given, err string }{
		{"wide, json or yaml", "wide", ""},
		{"wide, json or yaml", "yaml", ""},
		{"json or yaml: the v1 Pod", "json", ""},
		{"json or yaml: the v1 Pod", "wide", `-o: "wide": choose json or yaml` + of},
		{"wide, json or yaml", "", `-o: "": choose wide, json or yaml` + of},
		{"wide, json or yaml", "wide, json", `-o: "wide, json": choose wide, json or yaml` + of},
	} {
		var got string
		app := &cli.App{Commands: []*cli.Command{{Name: "x", Flags: []cli.Flag{OutputFlag(&got, row.text)}, Action: func(*cli.Context) error { return nil }}}}
		err := Execute(t.Context(), app, []string{"x", "-o", row.given})
		if row.err == "" && (err != nil || got != row.given) || row.err != "" && (err == nil || err.Error() != row.err) {
			t.Errorf("-o %q of %q: %q, %v", row.given, row.text, got, err)
		}
	}
}
