package command

import (
	"testing"

	"github.com/urfave/cli/v2"
)

func TestOutputsAreChosenFromThoseThereAre(t *testing.T) {
	wide, plain := []string{"wide", "json", "yaml"}, []string{"json", "yaml"}
	const of = "; `monopod x --help` lists the flags"
	for _, row := range []struct {
		words      []string
		given, err string
	}{
		{wide, "wide", ""},
		{wide, "yaml", ""},
		{plain, "json", ""},
		{plain, "wide", `-o: "wide": choose json or yaml` + of},
		{wide, "", `-o: "": choose wide, json or yaml` + of},
		{wide, "wide, json", `-o: "wide, json": choose wide, json or yaml` + of},
	} {
		var got string
		app := &cli.App{Commands: []*cli.Command{{Name: "x", Flags: []cli.Flag{OutputFlag(&got, row.words...)}, Action: func(*cli.Context) error { return nil }}}}
		err := Execute(t.Context(), app, []string{"x", "-o", row.given})
		if row.err == "" && (err != nil || got != row.given) || row.err != "" && (err == nil || err.Error() != row.err) {
			t.Errorf("-o %q of %q: %q, %v", row.given, row.words, got, err)
		}
	}
}
