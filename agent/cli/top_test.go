package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/print"
	"monopod/agent/server"
	"monopod/agent/status"
)

const usedNode = `
nodeName: Node1
cpu: {usageNanoCores: 1250000001, usageCoreNanoSeconds: 99}
memory: {workingSetBytes: 2147483648}
fs: {usedBytes: 16486699008, capacityBytes: 270553174016}
runtime: {imageFs: {usedBytes: 7729152}}
rlimit: {curproc: 233}
`

const usedPods = `
- podRef: {name: web-node1, namespace: default, uid: a}
  cpu: {usageNanoCores: 500000, usageCoreNanoSeconds: 5}
  memory: {workingSetBytes: 52428800}
  network: {name: eth0, rxBytes: 1500, txBytes: 2500000}
  ephemeral-storage: {usedBytes: 4096}
  process_stats: {process_count: 3}
  containers:
  - {name: app, cpu: {usageNanoCores: 400000}, memory: {workingSetBytes: 41943040}, rootfs: {usedBytes: 2048}, logs: {usedBytes: 1000}}
  - {name: log, cpu: {usageNanoCores: 100000}, memory: {workingSetBytes: 10485760}, logs: {usedBytes: 2000}}
- podRef: {name: busy-node1, namespace: default, uid: b}
  cpu: {usageNanoCores: 1100000000}
  memory: {workingSetBytes: 1048576}
  containers: [{name: loop, cpu: {usageNanoCores: 1100000000}, memory: {workingSetBytes: 1048576}}]
- podRef: {name: silent-node1, namespace: default, uid: c}
  containers: [{name: main}]
`

// usedOn serves what is used, written as YAML, on a socket.
func usedOn(t *testing.T, node, pods string, more ...server.Handler) (socket string) {
	t.Helper()
	var sum statsapi.Summary
	if err := errors.Join(yaml.UnmarshalStrict([]byte(node), &sum.Node), yaml.UnmarshalStrict([]byte(pods), &sum.Pods)); err != nil {
		t.Fatal(err)
	}
	store := clitest.Store(t, t.TempDir())
	var n v1.Node
	if err := yaml.Unmarshal([]byte("status: {allocatable: {cpu: '4', memory: 8Gi}}"), &n); err != nil {
		t.Fatal(err)
	}
	store.SetNode(&n)
	return clitest.Serve(t, server.Config{Store: store, Handlers: append(more, serves("/stats/summary", sum))})
}

// serves is a path with a JSON value.
func serves(path string, v any) server.Handler {
	return server.Handler{Path: path, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { print.As(w, "json", v) })}
}

// A terminal with room shows the last hour; a narrower one, and a pipe, show what they did before.
func TestTopShowsTheLastHourWhereThereIsRoom(t *testing.T) {
	hour := status.Trend{UID: "a"}
	for k := range 60 {
		hour.Points = append(hour.Points, status.Point{CPU: uint32(10 * k), Memory: 51200})
	}
	socket := usedOn(t, usedNode, usedPods, serves("/stats/hour", []status.Trend{hour}))
	for columns, shown := range map[int]bool{0: false, 40: false, 80: true} {
		var out bytes.Buffer
		if err := Top(t.Context(), &out, TopOptions{TopOptions: print.TopOptions{Format: print.Format{Columns: columns}}, Socket: socket}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "▁▁▂▃▃▄▄▅▆▆▇█") != shown || strings.Contains(out.String(), "MEMORY(1h)") != shown {
			t.Errorf("%d columns:\n%s", columns, &out)
		}
	}
}

func TestTop(t *testing.T) {
	other := strings.Replace(usedPods, "namespace: default, uid: b", "namespace: kube-system, uid: b", 1)
	rows := []struct {
		name, pods string
		o          TopOptions
	}{
		{"all", usedPods, TopOptions{}},
		{"containers", usedPods, TopOptions{TopOptions: print.TopOptions{Containers: true}}},
		{"by cpu", usedPods, TopOptions{TopOptions: print.TopOptions{SortBy: "cpu"}}},
		{"containers by memory", usedPods, TopOptions{TopOptions: print.TopOptions{Containers: true, SortBy: "memory"}}},
		{"namespaces", other, TopOptions{TopOptions: print.TopOptions{What: "pods"}}},
		{"wide", usedPods, TopOptions{TopOptions: print.TopOptions{Format: print.Format{Output: "wide"}}}},
		{"wide containers", usedPods, TopOptions{TopOptions: print.TopOptions{Format: print.Format{Output: "wide"}, Containers: true}}},
		{"node", usedPods, TopOptions{TopOptions: print.TopOptions{What: "node"}}},
		{"node yaml", usedPods, TopOptions{TopOptions: print.TopOptions{What: "node", Format: print.Format{Output: "yaml"}}}},
		{"pods json", usedPods, TopOptions{TopOptions: print.TopOptions{What: "pods", Format: print.Format{Output: "json"}}}},
		{"nothing runs", "[]", TopOptions{}},
		{"one pod", usedPods, TopOptions{TopOptions: print.TopOptions{What: "pods"}, Choice: client.Choice{Names: []string{"pod/web"}}}},
		{"one pod json", usedPods, TopOptions{TopOptions: print.TopOptions{What: "pods", Format: print.Format{Output: "json"}}, Choice: client.Choice{Names: []string{"busy"}}}},
		{"a namespace", other, TopOptions{Choice: client.Choice{Namespace: "kube-system"}}},
		{"a namespace json", other, TopOptions{TopOptions: print.TopOptions{Format: print.Format{Output: "json"}}, Choice: client.Choice{Namespace: "kube-system"}}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			row.o.Columns = 200
			row.o.Socket = usedOn(t, usedNode, row.pods)
			if err := Top(t.Context(), &out, row.o); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, out.String())
		})
	}
}

// A pod may be named with and without the word for pods.
func TestTopOfNames(t *testing.T) {
	socket := usedOn(t, usedNode, usedPods)
	for _, l := range []typedLine{
		{"top web", []string{"default     web", "not busy", "not NODE"}, nil, 0},
		{"top pod web busy", []string{"web", "busy", "not silent"}, nil, 0},
		{"top -n nope", []string{"NODE", "not POD"}, []string{"No pods run."}, 0},
		{"top wep", nil, []string{`there is no pod "wep"; there is default/web`}, 1},
		{"top node web", nil, []string{`there is one node: leave out "web"`}, 2},
	} {
		l.check(t, "--socket", socket)
	}
}

func TestTopRefuses(t *testing.T) {
	for want, o := range map[string]TopOptions{
		`--sort-by "name": choose cpu or memory`: {TopOptions: print.TopOptions{SortBy: "name"}},
		`no monopod answers on /nowhere`:         {Socket: "/nowhere"},
	} {
		if err := Top(t.Context(), io.Discard, o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// screens is a terminal that counts what is written to it, and hangs up.
type screens struct {
	bytes.Buffer
	writes, most int
	hangUp       func()
}

func (s *screens) Write(p []byte) (int, error) {
	if s.writes++; s.writes == s.most {
		s.hangUp()
	}
	return s.Buffer.Write(p)
}

func TestTopWatch(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := &screens{most: 2, hangUp: cancel} // the first clears the screen
	if err := TopWatch(ctx, s, func() int { return 6 }, TopOptions{TopOptions: print.TopOptions{Format: print.Format{Columns: 200}}, Socket: usedOn(t, usedNode, usedPods)}); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, strings.ReplaceAll(s.String(), "\x1b", "ESC"))
}
