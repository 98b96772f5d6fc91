package owner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/cli/command"
	"monopod/agent/server"
	"monopod/agent/status"
)

// agent serves two pods, which it stops when it is asked to; asked is what it was asked for.
func agent(t *testing.T) (socket string, asked *[]string) {
	t.Helper()
	store, asked := clitest.Store(t, t.TempDir()), &[]string{}
	set := func(name, app, reason string, phase v1.PodPhase) {
		p := &v1.Pod{Status: v1.PodStatus{Reason: reason, Phase: phase}}
		p.Namespace, p.Name, p.Labels, p.Spec.NodeName = "default", name, map[string]string{"app": app}, "n"
		store.SetPod("default/"+name, p)
	}
	set("db-n", "db", "", v1.PodRunning)
	set("web-n", "web", "", v1.PodRunning)
	request := func(what string) server.Request {
		kind := server.OfPod
		if what == "hold" || what == "release" {
			kind = server.OfPodOrNode
		}
		return kind(what, func(_ context.Context, pod types.NamespacedName, q url.Values) error {
			*asked = append(*asked, strings.TrimRight(fmt.Sprintf("%s %s %s", what, pod.Name, q.Encode()), " "))
			switch what {
			case "stop":
				set(pod.Name, "", status.ReasonStopped, v1.PodPending)
			case "start":
				set(pod.Name, "", "", v1.PodRunning)
			}
			return nil
		})
	}
	var requests []server.Request
	for _, what := range []string{"stop", "start", "hold", "release"} {
		requests = append(requests, request(what))
	}
	return clitest.Serve(t, server.Config{Store: store, Requests: requests}), asked
}

// run runs a command line, and returns what it says and its exit code.
func run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	app := &cli.App{Name: "monopod", Commands: []*cli.Command{Stop(), Start(), Hold(), Release()}, Writer: &out, ErrWriter: &out}
	err := command.Execute(t.Context(), app, args)
	if err != nil {
		out.WriteString(err.Error())
	}
	return out.String(), command.ExitCode(err)
}

func TestWhatTheAgentIsAskedFor(t *testing.T) {
	for _, row := range []struct {
		line string
		want []string
	}{
		{"stop web", []string{"stop web-n"}},
		{"stop web --no-wait", []string{"stop web-n"}},
		{"stop web db", []string{"stop db-n", "stop web-n"}},
		{"stop --all", []string{"stop db-n", "stop web-n"}},
		{"stop -l app=db", []string{"stop db-n"}},
		{"start web --no-wait", []string{"start web-n"}},
		{"hold", []string{"hold"}},
		{"hold web", []string{"hold web-n"}},
		{"hold --all", []string{"hold db-n", "hold web-n"}},
		{"hold web --for 2h --reason audit", []string{"hold web-n for=2h0m0s&reason=audit"}},
		{"hold --for 0s", []string{"hold"}},
		{"release", []string{"release"}},
		{"release -l app=web", []string{"release web-n"}},
	} {
		t.Run(row.line, func(t *testing.T) {
			socket, asked := agent(t)
			text, code := run(t, append(strings.Fields(row.line), "--socket", socket)...)
			slices.Sort(*asked)
			if code != 0 || !slices.Equal(*asked, row.want) {
				t.Errorf("code %d, asked %q, want %q: it says %s", code, *asked, row.want, text)
			}
		})
	}
}

// What cannot be meant is refused before the agent is asked.
func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"stop":                   "stop which pods? Name them, or give --all or -l LABELS",
		"start":                  "start which pods?",
		"stop web --all":         "name pods or give --all, not both",
		"hold web --all":         "name pods or give --all, not both",
		"stop web --timeout -1s": "--timeout -1s: it must not be negative",
		"hold --for -1h":         "--for -1h0m0s: it must not be negative",
		"hold -n prod":           "-n prod: name pods, or give --all or -l LABELS",
		"release -n prod":        "-n prod: name pods, or give --all or -l LABELS",
		"stop -l a=b=c":          "a=b=c",
	} {
		t.Run(line, func(t *testing.T) {
			socket, asked := agent(t)
			text, code := run(t, append(strings.Fields(line), "--socket", socket)...)
			if code != command.ExitUsage || !strings.Contains(text, want) || len(*asked) != 0 {
				t.Errorf("code %d, asked %q, it says %q, want %q", code, *asked, text, want)
			}
		})
	}
}

func TestTheExitCodeSaysHowItEnded(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	refused := errors.New("refused")
	for _, row := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"well", t.Context(), nil, 0},
		{"well in spite of an interrupt", over, nil, 0},
		{"refused", t.Context(), refused, command.ExitFailed},
		{"no agent runs", t.Context(), fmt.Errorf("stop: %w", client.ErrDown), command.ExitDown},
		{"the time is over", t.Context(), fmt.Errorf("stop: %w", client.ErrTimeout), command.ExitLate},
		{"interrupted", over, refused, command.ExitInterrupted},
	} {
		if got := command.ExitCode(command.Waited(row.ctx, row.err)); got != row.want {
			t.Errorf("%s: exit code %d, want %d", row.name, got, row.want)
		}
	}
	if _, code := run(t, "hold", "--socket", "/nowhere/s"); code != command.ExitDown {
		t.Errorf("where no agent runs the exit code is %d", code)
	}
}
