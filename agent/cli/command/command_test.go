package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// called is what a run of the table came to: what the command was given, what
// was printed, the exit code and its text.
type called struct {
	args   []string
	dash   int
	loud   bool
	in     string // with "=" before it if it was given
	times  []string
	out    string
	errors string
	code   int
	error  string
}

func callTable(t *testing.T, args ...string) (got called) {
	t.Helper()
	var out, errs bytes.Buffer
	var count int64
	var after time.Duration
	take := func(c *cli.Context) error {
		got.args, got.dash, got.times, got.loud = c.Args().Slice(), Dash(c), c.StringSlice("time"), c.Bool("loud")
		if c.IsSet("in-voice") {
			got.in = "=" + c.String("in-voice")
		}
		return nil
	}
	app := &cli.App{Name: "monopod", Usage: "try", Version: "v1.2.3", Writer: &out, ErrWriter: &errs, Commands: []*cli.Command{
		{
			Name: "do", ArgsUsage: "THING ...", Usage: "do things", Description: "Things are done.", Action: take,
			Flags: []cli.Flag{
				&cli.BoolFlag{Name: "loud", Aliases: []string{"l"}, Usage: "shout"},
				&cli.BoolFlag{Name: "quick", Aliases: []string{"q"}, Usage: "hurry"},
				&cli.StringFlag{Name: "in-voice", Aliases: []string{"v"}, Value: "low", Usage: "speak in a `VOICE`"},
				&cli.StringSliceFlag{Name: "time", KeepSpace: true, Usage: "at this `TIME`; may be repeated"},
				&cli.Int64Flag{Name: "count", Destination: &count, Usage: "so `MANY`"},
				&cli.DurationFlag{Name: "after", Destination: &after, Usage: "a `WHILE` from now"},
				&cli.StringFlag{Name: "secret", Hidden: true, Usage: "not shown"},
				&cli.Float64Flag{Name: "rate", Hidden: true, Usage: "of a kind that the line does not know"},
			},
		},
		{Name: "none", Usage: "take nothing", Action: func(c *cli.Context) error { return NoArgs(c, "; put it elsewhere") }},
		{Name: "fail", Usage: "fail", Action: func(*cli.Context) error { return errors.New("it went wrong") }},
		{Name: "coded", Usage: "end with a code", Action: func(*cli.Context) error { return cli.Exit("too late", 124) }},
		{Name: "shy", Usage: "not shown", Hidden: true, Action: func(*cli.Context) error { return nil }},
		Help(),
	}}
	err := Execute(t.Context(), app, args)
	got.out, got.errors, got.code = out.String(), errs.String(), ExitCode(err)
	if err != nil {
		got.error = err.Error()
	}
	return got
}

func TestCommandsAreFoundAndParsed(t *testing.T) {
	const of = "; `monopod do --help` lists the flags"
	for _, row := range []struct {
		args string
		want called
	}{
		{"do a b", called{args: []string{"a", "b"}, dash: -1}},
		{"do a -l b", called{args: []string{"a", "b"}, dash: -1, loud: true}},
		{"do --loud a -- -l c", called{args: []string{"a", "-l", "c"}, dash: 1, loud: true}},
		{"do a -- b -- c", called{args: []string{"a", "b", "--", "c"}, dash: 1}},
		{"do a -", called{args: []string{"a", "-"}, dash: -1}},
		{"do help", called{args: []string{"help"}, dash: -1}},
		{"do h", called{args: []string{"h"}, dash: -1}},
		{"do loud none", called{args: []string{"loud", "none"}, dash: -1}},
		{"do a -vhigh", called{args: []string{"a"}, dash: -1, in: "=high"}},
		{"do a -v=high", called{args: []string{"a"}, dash: -1, in: "=high"}},
		{"do a -v high b", called{args: []string{"a", "b"}, dash: -1, in: "=high"}},
		{"do a -lqv high", called{args: []string{"a"}, dash: -1, in: "=high", loud: true}},
		{"do a -lqvhigh", called{args: []string{"a"}, dash: -1, in: "=high", loud: true}},
		{"do -v -l", called{dash: -1, in: "=-l"}},
		{"do --in-voice -- a", called{args: []string{"a"}, dash: -1, in: "=--"}},
		{"do --in-voice= a", called{args: []string{"a"}, dash: -1, in: "="}},
		{"do -v high --in-voice low", called{dash: -1, in: "=low"}},
		{"do -l=false --loud=true", called{dash: -1, loud: true}},
		{"do -l --loud=false", called{dash: -1}},
		{"do --time 1,2 --time=3", called{dash: -1, times: []string{"1,2", "3"}}},
		{"do --count -1 --after 1m", called{dash: -1}},
		{"do --lout", called{code: 2, error: "unknown flag: --lout (did you mean --loud?)" + of}},
		{"do a --wait", called{code: 2, error: "unknown flag: --wait" + of}},
		{"do --l", called{code: 2, error: "unknown flag: --l" + of}},
		{"do -lxq", called{code: 2, error: "unknown shorthand flag: 'x' in -xq" + of}},
		{"do a -v", called{code: 2, error: "flag needs an argument: 'v' in -v" + of}},
		{"do --time", called{code: 2, error: "flag needs an argument: --time" + of}},
		{"do -l=maybe", called{code: 2, error: `--loud: "maybe" is neither true nor false` + of}},
		{"do --count few", called{code: 2, error: `--count: "few" is no whole number, or too large a one` + of}},
		{"do --after soon", called{code: 2, error: `--after: "soon" is no duration such as 90s or 5m` + of}},
		{"do --rate much", called{code: 2, error: `invalid value "much" for flag -rate: parse error` + of}},
		{"do --secre x", called{code: 2, error: "unknown flag: --secre" + of}},
		{"do a --generate-bash-completion", called{code: 2, error: "unknown flag: --generate-bash-completion" + of}},
		{"none", called{}},
		{"none x", called{code: 2, error: `none takes no arguments, got "x"; put it elsewhere`}},
		{"fail", called{code: 1, error: "it went wrong"}},
		{"coded", called{code: 124, error: "too late"}},
		{"shy", called{}},
		{"what", called{code: 2, error: "there is no command \"what\"; `monopod --help` lists them"}},
		{"nome", called{code: 2, error: "there is no command \"nome\" (did you mean none?); `monopod --help` lists them"}},
		{"sy", called{code: 2, error: "there is no command \"sy\"; `monopod --help` lists them"}},
		{"help what", called{code: 2, error: "there is no command \"what\"; `monopod --help` lists them"}},
		{"--loud do", called{code: 2, error: "the flag --loud stands before the command; flags go behind it, as in `monopod ps -o wide`"}},
		{"-- do", called{code: 2, error: "the flag -- stands before the command; flags go behind it, as in `monopod ps -o wide`"}},
	} {
		t.Run(row.args, func(t *testing.T) {
			got := callTable(t, strings.Split(row.args, " ")...)
			if !slices.Equal(got.args, row.want.args) || !slices.Equal(got.times, row.want.times) || got.dash != row.want.dash ||
				got.loud != row.want.loud || got.in != row.want.in || got.code != row.want.code || got.error != row.want.error ||
				got.out != "" || got.errors != "" {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	list := `monopod: try

Usage: monopod COMMAND [FLAGS] [ARGUMENTS]

  do           do things
  none         take nothing
  fail         fail
  coded        end with a code
  help         list the commands, or say more of one

` + "`monopod COMMAND --help` says more of each.\n"
	of := `monopod do: do things

Usage: monopod do [FLAGS] THING ...

Things are done.

Flags:
  -l, --loud             shout
  -q, --quick            hurry
  -v, --in-voice VOICE   speak in a VOICE (default "low")
      --time TIME        at this TIME; may be repeated
      --count MANY       so MANY
      --after WHILE      a WHILE from now
`
	for args, want := range map[string]string{"": list, "help": list, "--help": list, "-h": list, "-h do": list,
		"do --help": of, "do x -h": of, "do -lh": of, "help do": of, "do --help --lout": of, "help do x": of} {
		if got := callTable(t, strings.Fields(args)...); got.out != want || got.code != 0 || got.args != nil {
			t.Errorf("%s: code %d\n%s\nwant\n%s", args, got.code, got.out, want)
		}
	}
}

// An output that is full is an error of help, too.
func TestHelpIsNotLost(t *testing.T) {
	app := &cli.App{Name: "monopod", Writer: failing{}, Commands: []*cli.Command{Help()}}
	if err := Execute(t.Context(), app, nil); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("help that was not written: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// The end of a program that was run on the way is not monopod's own.
func TestOnlyOurOwnErrorsHaveACode(t *testing.T) {
	ended := exec.Command("false").Run()
	if code := ExitCode(fmt.Errorf("hook: %w", ended)); ended == nil || code != ExitFailed {
		t.Errorf("%v: exit code %d", ended, code)
	}
}

func TestADescriptionIsWrappedByTheParagraph(t *testing.T) {
	const text = "\nOne line\nand the next.\n\n    as it\n    stands\nbehind it\nall of this.\n"
	if got, want := flow(text), "One line and the next.\n\n    as it\n    stands\nbehind it all of this."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
