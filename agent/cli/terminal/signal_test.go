package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// asChild names the variable by which the test's binary is a command that signals end.
const asChild = "MONOPOD_TEST_UNTIL_SIGNAL"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := UntilSignal(context.Background())
	defer stop()
	os.Stdout.WriteString("waits\n")
	<-ctx.Done()
	var by *Interrupted
	if errors.As(context.Cause(ctx), &by) {
		os.Exit(by.ExitCode())
	}
}

// nohup(1) has a command ignore the end of its terminal.
func TestACommandOutlivesItsTerminalIfItIsTo(t *testing.T) {
	for what, row := range map[string]struct {
		by   string
		sent []syscall.Signal
		want int
	}{
		"at a terminal": {"env", []syscall.Signal{syscall.SIGHUP}, 128 + int(syscall.SIGHUP)},
		"with nohup":    {"nohup", []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, 128 + int(syscall.SIGTERM)},
	} {
		if row.by == "env" && signal.Ignored(syscall.SIGHUP) {
			continue // as this test is to outlive its own terminal
		}
		cmd := exec.Command(row.by, os.Args[0])
		cmd.Env = append(os.Environ(), asChild+"=1")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		for _, s := range row.sent {
			_ = cmd.Process.Signal(s)
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); line != "waits\n" || code != row.want {
			t.Errorf("%s: it says %q and ends with %d, want %d", what, line, code, row.want)
		}
	}
}
