package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
)

func TestLogsRefusesWhatCannotBeMeant(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"", "logs of what? Name a pod, as in `monopod logs web`, or select pods by labels with -l, or all with -A"},
		{"web -l app=web", `name a pod or select pods by labels, not both: "web" and -l app=web`},
		{"web app proxy", `logs takes a pod and a container, got "proxy" too; choose several containers with -c`},
		{"web app -c proxy", "name containers once: behind the pod, or with -c or --all-containers"},
		{"web -c proxy --all-containers", "-c and --all-containers exclude each other"},
		{"web --since 5m --since-time 2026-05-04T12:00:00Z", "--since and --since-time exclude each other"},
		{"web --since -5m", "--since -5m0s: give a time that is over, such as 5m"},
		{"web --since-time noon", `--since-time "noon": write it as in 2026-05-04T12:00:00Z`},
		{"web --tail -2", "--tail -2: give a number of lines, or -1 for all"},
		{"web --tail few", `--tail: "few" is no whole number, or too large a one; ` + "`monopod logs --help` lists the flags"},
		{"-l a===", `-l: "a===" is no selector such as app=web,tier!=db`},
		{"-l a --socket /none --root /none", "no monopod answers on /none: " + client.WhereToLook() + " (no such file or directory)"},
	} {
		err := execute(t.Context(), strings.NewReader(""), os.Stdout, io.Discard, strings.Fields("logs "+row.args)...)
		code := command.ExitUsage
		if strings.Contains(row.args, "/none") {
			code = command.ExitDown
		}
		if err == nil || err.Error() != row.want || command.ExitCode(err) != code {
			t.Errorf("%s: %d %v\nwant %s", row.args, command.ExitCode(err), err, row.want)
		}
	}
}

func TestLogsEnd(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := logsEnd(ctx, io.ErrClosedPipe); command.ExitCode(err) != command.ExitFailed {
		t.Errorf("an error: %v", err)
	}
	cancel(context.Canceled)
	if err := logsEnd(ctx, ctx.Err()); command.ExitCode(err) != 130 || err.Error() != "" {
		t.Errorf("interrupted: %v", err)
	}
	if err := logsEnd(ctx, nil); err != nil {
		t.Error(err)
	}
}
