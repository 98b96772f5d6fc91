package command

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// called is what a run of the table came to: what the command was given, what
// was printed, the exit code and its text.
type called struct {
	args  []string
	dash  int
	loud  bool
	out   string
	code  int
	error string
}

func callTable(t *testing.T, args ...string) called {
	t.Helper()
	var got called
	table := []*Command{
		{
			Name: "do", Args: "THING ...", Usage: "do things", About: "Things are done.",
			Flags: func(f *pflag.FlagSet) { f.BoolVarP(&got.loud, "loud", "l", false, "shout") },
			Run: func(_ context.Context, c *Call) error {
				got.args, got.dash = slices.Clone(c.Args), c.Dash
				return nil
			},
		},
		{Name: "none", Usage: "take nothing", Run: func(_ context.Context, c *Call) error { return c.NoArgs("put it elsewhere") }},
		{Name: "fail", Usage: "fail", Run: func(context.Context, *Call) error { return errors.New("it went wrong") }},
		{Name: "coded", Usage: "end with a code", Run: func(context.Context, *Call) error { return Exit(124, "too late") }},
		{Name: "shy", Usage: "nobody sees me", hidden: true, Run: func(context.Context, *Call) error { return nil }},
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	err = Execute(t.Context(), table, args, &Call{In: strings.NewReader(""), Out: out, Err: io.Discard})
	printed, _ := os.ReadFile(out.Name())
	got.out, got.code = string(printed), ExitCode(err)
	if err != nil {
		got.error = err.Error()
	}
	return got
}

func TestCommandsAreFoundAndParsed(t *testing.T) {
	for _, row := range []struct {
		args []string
		want called
	}{
		{[]string{"do", "a", "b"}, called{args: []string{"a", "b"}, dash: -1}},
		{[]string{"do", "a", "-l", "b"}, called{args: []string{"a", "b"}, dash: -1, loud: true}},
		{[]string{"do", "--loud", "a", "--", "-l", "c"}, called{args: []string{"a", "-l", "c"}, dash: 1, loud: true}},
		{[]string{"do", "--lout"}, called{code: 2, error: "unknown flag: --lout; `monopod do --help` lists the flags"}},
		{[]string{"none"}, called{}},
		{[]string{"none", "x"}, called{code: 2, error: `none takes no arguments, got "x"; put it elsewhere`}},
		{[]string{"fail"}, called{code: 1, error: "it went wrong"}},
		{[]string{"coded"}, called{code: 124, error: "too late"}},
		{[]string{"shy"}, called{}},
		{[]string{"what"}, called{code: 2, error: "there is no command \"what\"; `monopod --help` lists them"}},
		{[]string{"--loud", "do"}, called{code: 2, error: "the flag --loud stands before the command; flags go behind it, as in `monopod ps -o wide`"}},
	} {
		t.Run(strings.Join(row.args, " "), func(t *testing.T) {
			got := callTable(t, row.args...)
			if !slices.Equal(got.args, row.want.args) || got.dash != row.want.dash || got.loud != row.want.loud ||
				got.code != row.want.code || got.error != row.want.error || got.out != "" {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	list := "monopod: " + purpose + `

Usage: monopod COMMAND [FLAGS] [ARGUMENTS]

  do           do things
  none         take nothing
  fail         fail
  coded        end with a code

` + "`monopod COMMAND --help` says more of each.\n"
	of := `monopod do: do things

Usage: monopod do [FLAGS] THING ...

Things are done.

Flags:
  -l, --loud   shout
`
	for args, want := range map[string]string{"": list, "help": list, "--help": list, "-h": list, "do --help": of, "do x -h": of, "help do": of} {
		if got := callTable(t, strings.Fields(args)...); got.out != want || got.code != 0 {
			t.Errorf("%s: code %d\n%s\nwant\n%s", args, got.code, got.out, want)
		}
	}
}
