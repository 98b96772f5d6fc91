package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"monopod/agent/cli/command"
)

// execute runs a command line of the real table.
func execute(ctx context.Context, in io.Reader, out, errs io.Writer, args ...string) error {
	app := App()
	app.Reader, app.Writer, app.ErrWriter = in, out, errs
	return command.Execute(ctx, app, args)
}

// runTable runs a command line of the real table and writes down what comes of it.
func runTable(t *testing.T, b *bytes.Buffer, args ...string) {
	t.Helper()
	var errs bytes.Buffer
	b.WriteString("$ monopod " + strings.Join(args, " ") + "\n")
	err := execute(t.Context(), strings.NewReader(""), b, &errs, args...)
	b.WriteString(errs.String())
	if err != nil && err.Error() != "" {
		b.WriteString("monopod: " + err.Error() + "\n")
	}
	if code := command.ExitCode(err); code != 0 {
		b.WriteString("[" + string(rune('0'+code)) + "]\n")
	}
}

// What cannot be meant is said before anybody is asked.
func TestUsageIsSaid(t *testing.T) {
	var b bytes.Buffer
	for _, line := range []string{
		"exec", "exec -- ls", "exec web", "exec web ls", "exec web --", "exec web more -- ls", "exec web -x -- ls",
		"wait", "wait web --all", "wait web -l a=b", "wait web --for happy", "wait web --timeout -1s", "wait web --timeout soon", "wait --all -l a=b=c",
		"restart", "restart web --timeout -1s", "forget", "forget web --socket /nowhere/s", "ps -l a=b=c", "ps web -l a=b", "completion", "completion tcsh", "man web",
		"ps -oxml", "ps -ojson -n", "ps --outptu wide", "lgos", "exce", "psx", "nope", "help lgos", "-o wide ps", "top -wc pods node", "logs web --tail few", "config x", "version -o wide",
	} {
		runTable(t, &b, strings.Fields(line)...)
	}
	shown(t, "usage", b.String())
}

func TestHelpOfCommands(t *testing.T) {
	var b bytes.Buffer
	for _, name := range []string{"ps", "exec", "wait", "restart", "forget", "completion", "man"} {
		runTable(t, &b, name, "--help")
	}
	shown(t, "help", b.String())
}

func TestCompletionScripts(t *testing.T) {
	var b bytes.Buffer
	for _, shell := range []string{"bash", "zsh", "fish"} {
		runTable(t, &b, "completion", shell)
	}
	shown(t, "completion", b.String())
}
