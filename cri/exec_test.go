package cri_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/cri/critest"
)

func TestACommandInAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		c := cri.New(r.Conn())
		id := startApp(t, c)
		r.OnExec(func(ctx context.Context, _ critest.Container, command []string) (string, int32, error) {
			if command[0] == "hang" {
				<-ctx.Done()
			}
			return "it says " + command[0], 3, nil
		})
		a, err := c.ExecSync(t.Context(), id, []string{"hello"}, time.Second)
		if err != nil || string(a.Stdout) != "it says hello" || a.ExitCode != 3 {
			t.Errorf("hello: %v, %v", a, err)
		}
		began := time.Now()
		_, err = c.ExecSync(t.Context(), id, []string{"hang"}, 1500*time.Millisecond)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("hang ended after %s with %v, want a deadline after 1.5 s, rounded up", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began = time.Now()
		if _, err = c.ExecSync(ctx, id, []string{"hang"}, 0); err == nil || time.Since(began) != time.Hour {
			t.Errorf("hang without a timeout ended after %s with %v, want the caller's end", time.Since(began), err)
		}
		if _, err := c.ExecSync(t.Context(), "none", []string{"a"}, time.Second); !cri.NotFound(err) {
			t.Errorf("in no container: %v", err)
		}
	})
}

// startApp starts one container and returns its id.
func startApp(t *testing.T, c *cri.Client) string {
	t.Helper()
	pod := podConfig("p", nil)
	sandbox, err := c.RunSandbox(t.Context(), pod, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PullImage(t.Context(), &rt.ImageSpec{Image: "app"}, nil, pod); err != nil {
		t.Fatal(err)
	}
	id, err := c.CreateContainer(t.Context(), sandbox, containerConfig("app", nil), pod)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}
