package cri_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"monopod/cri"
	"monopod/cri/critest"
)

// What a command writes is the container's to choose, and what is kept of it is not.
func TestFewOfACommandsWordsAreKept(t *testing.T) {
	over := map[string]func(*critest.Runtime) *cri.Client{
		"a socket": func(r *critest.Runtime) *cri.Client { return dial(t, r) },
		"memory":   func(r *critest.Runtime) *cri.Client { return cri.New(r.Conn()) },
	}
	for name, client := range over {
		t.Run(name, func(t *testing.T) {
			r := critest.Start(t)
			c := client(r)
			r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) {
				return "begins" + strings.Repeat("x", 12<<20) + "ends", 3, nil
			})
			a, err := c.ExecSync(t.Context(), startApp(t, c), []string{"a"}, 0)
			if err != nil || a.ExitCode != 3 {
				t.Fatalf("code %d, %v", a.GetExitCode(), err)
			}
			if out := string(a.Stdout); cap(a.Stdout) > 16<<10 || !strings.HasPrefix(out, "begins") || !strings.HasSuffix(out, "ends") || len(out) < 10<<10 {
				t.Errorf("%d bytes of %d are kept: %.10q", len(out), cap(a.Stdout), out)
			}
		})
	}
}

func TestACommandThatWritesTooMuchIsTold(t *testing.T) {
	r := critest.Start(t)
	c := dial(t, r)
	r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) {
		return strings.Repeat("x", 17<<20), 0, nil
	})
	id := startApp(t, c)
	_, here := c.ExecSync(t.Context(), id, []string{"a"}, 0)
	r.Fault(critest.On("ExecSync").Fail(codes.ResourceExhausted, "grpc: trying to send message larger than max (17825800 vs. 16777216)"))
	_, there := c.ExecSync(t.Context(), id, []string{"a"}, 0)
	for _, err := range []error{here, there} {
		if !cri.TooLarge(err) || !strings.HasSuffix(err.Error(), "the command wrote more than the 16 MiB that the runtime can tell of, and how it ended is not known") {
			t.Errorf("error %v", err)
		}
	}
	r.ClearFaults()
	r.Fault(critest.On("ExecSync").Fail(codes.ResourceExhausted, "too many processes"))
	if _, err := c.ExecSync(t.Context(), id, []string{"a"}, 0); cri.TooLarge(err) {
		t.Errorf("another error: %v", err)
	}
}
