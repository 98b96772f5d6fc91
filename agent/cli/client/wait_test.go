package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/clitest"
	"monopod/agent/status"
)

// is returns a pod in some state, in a word or two.
func is(name, state string) v1.Pod {
	p := named("default", name+"-n1", "n1", "main")
	p.Labels = map[string]string{"app": name}
	condition := func(kind v1.PodConditionType) {
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: kind, Status: v1.ConditionTrue})
	}
	switch state {
	case "pending":
		p.Status.Phase = v1.PodPending
	case "crashing":
		p.Status.Phase = v1.PodRunning
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}}}}
	case "running":
		p.Status.Phase = v1.PodRunning
		condition(v1.PodInitialized)
	case "ready":
		p.Status.Phase = v1.PodRunning
		condition(v1.PodReady)
	case "leaving":
		p.Status.Phase, p.DeletionTimestamp = v1.PodFailed, &metav1.Time{}
	case "succeeded":
		p.Status.Phase = v1.PodSucceeded
	case "failed":
		p.Status.Phase, p.Status.Reason, p.Status.Message = v1.PodFailed, "DeadlineExceeded", "too\nlong"
	default:
		panic(state)
	}
	return p
}

// film is what the agent answers: each answer goes for so long.
type film []scene

type scene struct {
	until      time.Duration // from the start; 0: for ever
	pods       []v1.Pod
	incomplete bool
	err        error
}

func (f film) ask(started time.Time) func(context.Context) ([]v1.Pod, bool, error) {
	return func(context.Context) ([]v1.Pod, bool, error) {
		for _, s := range f {
			if s.until == 0 || time.Since(started) < s.until {
				return s.pods, !s.incomplete, s.err
			}
		}
		panic("the film is over")
	}
}

func TestWait(t *testing.T) {
	down := fmt.Errorf("no monopod answers on /s: "+WhereToLook()+" (%w)", syscall.ECONNREFUSED)
	pods := func(p ...v1.Pod) []v1.Pod { return p }
	rows := []struct {
		what    string
		names   []string
		choice  Choice
		outcome string
		film    film
		took    time.Duration
		err     string
	}{
		{"ready at once", []string{"web"}, Choice{}, "ready", film{{0, pods(is("web", "ready")), false, nil}}, 0, ""},
		{"ready later", []string{"web"}, Choice{}, "ready", film{{time.Second, pods(is("web", "pending")), false, nil}, {0, pods(is("web", "ready")), false, nil}}, 1200 * time.Millisecond, ""},
		{"two, one after the other", []string{"web", "default/db"}, Choice{}, "ready", film{
			{time.Second, pods(is("web", "ready"), is("db", "pending")), false, nil}, {0, pods(is("web", "running"), is("db", "ready")), false, nil}}, 1200 * time.Millisecond, ""},
		{"one that comes yet", []string{"wob"}, Choice{}, "running", film{{time.Second, pods(is("web", "ready")), false, nil}, {0, pods(is("wob", "running")), false, nil}}, 1200 * time.Millisecond, ""},
		{"an agent that comes back", []string{"web"}, Choice{}, "ready", film{{time.Second, pods(is("web", "pending")), false, nil}, {2 * time.Second, nil, false, down}, {0, pods(is("web", "ready")), false, nil}}, 2100 * time.Millisecond, ""},
		{"too late", []string{"web", "db"}, Choice{}, "ready", film{{0, pods(is("web", "crashing"), is("db", "pending")), false, nil}}, 10 * time.Second,
			"not ready within 10s: default/web: container main: CrashLoopBackOff: back-off 10s; default/db: Pending"},
		{"too late for an agent", []string{"web"}, Choice{}, "ready", film{{0, nil, false, down}}, 10 * time.Second, "not ready within 10s: " + down.Error()},
		{"never", []string{"web"}, Choice{}, "ready", film{{time.Second, pods(is("web", "running")), false, nil}, {0, pods(is("web", "failed")), false, nil}}, 1200 * time.Millisecond,
			"default/web is not ready and will not be: it has failed (DeadlineExceeded: too long)"},
		{"never, for it has succeeded", []string{"web"}, Choice{}, "failed", film{{0, pods(is("web", "succeeded")), false, nil}}, 0, "default/web is not failed and will not be: it has succeeded"},
		{"a failed one that makes way for another", []string{"web"}, Choice{}, "succeeded", film{{time.Second, pods(is("web", "leaving")), false, nil}, {0, pods(is("web", "succeeded")), false, nil}}, 1200 * time.Millisecond, ""},
		{"all are ready, but for one that is done", nil, Choice{}, "ready", film{{time.Second, pods(is("a", "succeeded"), is("b", "pending")), false, nil}, {0, pods(is("a", "succeeded"), is("b", "ready")), false, nil}}, 1200 * time.Millisecond, ""},
		{"all are ready, but for one that failed", nil, Choice{}, "ready", film{{0, pods(is("a", "succeeded"), is("b", "failed")), false, nil}}, 0,
			"default/b is not ready and will not be: it has failed (DeadlineExceeded: too long)"},
		{"all are ready that an agent reports which has just started, but not yet all", nil, Choice{}, "ready", film{{time.Second, pods(is("a", "ready")), true, nil}, {2 * time.Second, pods(is("a", "ready"), is("b", "pending")), false, nil}, {0, pods(is("a", "ready"), is("b", "ready")), false, nil}}, 2100 * time.Millisecond, ""},
		{"not all are reported in time", nil, Choice{Selector: "app=a"}, "ready", film{{0, pods(is("a", "ready")), true, nil}}, 10 * time.Second, "not ready within 10s: the agent does not report all pods yet"},
		{"by the word for pods", []string{"pod", "a", "pods/b"}, Choice{}, "ready", film{{0, pods(is("a", "ready"), is("b", "ready")), false, nil}}, 0, ""},
		{"completed", []string{"a", "b"}, Choice{}, "completed", film{{0, pods(is("a", "succeeded"), is("b", "failed")), false, nil}}, 0, ""},
		{"a condition", []string{"web"}, Choice{}, "condition=initialized", film{{0, pods(is("web", "running")), false, nil}}, 0, ""},
		{"a condition that is not", []string{"web"}, Choice{}, "condition=Ready=False", film{{0, pods(is("web", "ready")), false, nil}}, 10 * time.Second, "not Ready=False within 10s: default/web: Running"},
		{"gone, which is said twice", []string{"web"}, Choice{}, "gone", film{{time.Second, pods(is("web", "ready")), false, nil}, {0, nil, false, nil}}, 1500 * time.Millisecond, ""},
		{"not gone, for the agent has just started", []string{"web"}, Choice{}, "gone", film{{time.Second, nil, true, nil}, {0, pods(is("web", "ready")), false, nil}}, 10 * time.Second, "not gone within 10s: default/web: Running"},
		{"by label", nil, Choice{Selector: "app=web"}, "ready", film{{time.Second, pods(is("db", "pending")), false, nil}, {0, pods(is("db", "pending"), is("web", "ready")), false, nil}}, 1200 * time.Millisecond, ""},
		{"all gone", nil, Choice{}, "gone", film{{time.Second, pods(is("db", "pending")), false, nil}, {0, nil, false, nil}}, 1500 * time.Millisecond, ""},
		{"root only", []string{"web"}, Choice{}, "ready", film{{0, nil, false, fmt.Errorf("the socket /s is for root only: %w", syscall.EACCES)}}, 0, "the socket /s is for root only: permission denied"},
		{"not clear who", []string{"proxy"}, Choice{}, "ready", film{{0, crowd(), false, nil}}, 0, `"proxy" may be any of a/proxy-n1, b/proxy-n1: say which`},
		{"no outcome", []string{"web"}, Choice{}, "happy", nil, 0, `--for "happy": choose ready, running, succeeded, failed, completed, gone, removed, accepted, updated or condition=TYPE[=STATUS]`},
	}
	var printed bytes.Buffer
	for _, r := range rows {
		t.Run(r.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				var out, errs bytes.Buffer
				r.choice.Names = r.names
				err := Wait(t.Context(), WaitOptions{Choice: r.choice, For: r.outcome, Timeout: 10 * time.Second, Out: &out, Err: &errs, ask: r.film.ask(started)})
				if took := time.Since(started); clitest.Text(err) != r.err || took != r.took {
					t.Errorf("after %s: %v\nwant %s: %s", took, err, r.took, r.err)
				}
				if late := r.took == 10*time.Second; errors.Is(err, ErrTimeout) != late {
					t.Errorf("%v is late: %v", err, !late)
				}
				fmt.Fprintf(&printed, "# %s\n%s", r.what, &out)
				for line := range strings.Lines(errs.String()) {
					fmt.Fprint(&printed, "2> ", line)
				}
			})
		})
	}
	clitest.Golden(t, printed.String())
}

// The pods of an agent that has just started come one after the other, once it has read their files.
func TestAWaitForAllPodsKnowsWhetherTheseAreAll(t *testing.T) {
	const web = "- {metadata: {namespace: default, name: web-n1}}\n"
	files := []status.File{{Path: "/m/web.yaml", Pods: []string{"default/web-n1"}}, {Path: "/m/db.yaml", Pods: []string{"default/db-n1"}}}
	for _, r := range []struct {
		about, pods string
		m           status.Manifests
		want        bool
	}{
		{"no manifests are read", "", status.Manifests{}, false},
		{"one is not reported", web, status.Manifests{Dir: "/m", Files: files}, false},
		{"all are", web + "- {metadata: {namespace: default, name: db-n1}}\n", status.Manifests{Dir: "/m", Files: files}, true},
		{"there are none", "", status.Manifests{Dir: "/m"}, true},
	} {
		o := WaitOptions{Socket: clitest.Agent(t, r.pods, r.m, status.Runtime{}), For: "ready"}
		if _, complete, err := o.askAgent(t.Context()); err != nil || complete != r.want {
			t.Errorf("%s: %t, %v", r.about, complete, err)
		}
	}
}
