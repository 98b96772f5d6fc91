package stats

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc/codes"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/cri/critest"
)

var trees = []struct{ tree, driver string }{{"v1", "cgroupfs"}, {"v2", "systemd"}}

// What is told of recorded machines, byte by byte.
func TestARecordedMachine(t *testing.T) {
	for _, row := range trees {
		t.Run(row.tree, func(t *testing.T) {
			h := plant(t, row.tree)
			synctest.Test(t, func(t *testing.T) {
				c := looker(t, h, critest.New(t), row.driver, parsePod(t, webPod))
				sum, err := c.Summary(t.Context(), false)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.MarshalIndent(sum, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				golden(t, row.tree+"-summary.json", append(text, '\n'))
				for name, ask := range map[string]func(context.Context) ([]byte, error){"resource": c.Resource, "cadvisor": c.Cadvisor} {
					text, err := ask(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					golden(t, row.tree+"-"+name+".txt", withoutCores(text))
					lint(t, string(text))
				}
			})
		})
	}
}

// withoutCores leaves out how many processors the test runs on.
func withoutCores(text []byte) []byte {
	head, rest, _ := bytes.Cut(text, []byte("\nmachine_cpu_cores "))
	if rest == nil {
		return text
	}
	_, tail, _ := bytes.Cut(rest, []byte("\n"))
	return bytes.Join([][]byte{head, tail}, []byte("\n"))
}

// lint checks what every reader of the text format relies on: each metric is
// started once, has values, and no two of the same labels.
func lint(t *testing.T, text string) {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := p.TextToMetricFamilies(strings.NewReader(text)); err != nil {
		t.Errorf("Prometheus' own reader: %v", err)
	}
	started, series, metric, values := map[string]bool{}, map[string]bool{}, "", 1
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			if metric = f[2]; started[metric] || values == 0 {
				t.Errorf("%s is started twice, or the metric before has no values", metric)
			}
			started[metric], values = true, 0
		case strings.HasPrefix(line, "# TYPE "):
			if f[2] != metric || strings.HasSuffix(metric, "_total") != (f[3] == "counter") && !strings.HasSuffix(metric, "failcnt") {
				t.Errorf("%q below %s", line, metric)
			}
		default:
			name, _, _ := strings.Cut(f[0], "{")
			if values++; name != metric || series[f[0]] || len(f) < 2 || len(f) > 3 {
				t.Errorf("%q below %s, or twice", line, metric)
			}
			series[f[0]] = true
		}
	}
}

// The summary has volumes, logs, networks, processes and file systems.
func TestTheSummaryHasAllParts(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		r.SetImageDir(t.TempDir())
		c := looker(t, h, r, "systemd", parsePod(t, webPod))
		put(t, c.config.Root, "pods/abc/volumes/kubernetes.io~empty-dir/data/file", strings.Repeat("x", 100_000))
		put(t, c.config.PodLogs, "default_web-n_abc/app/0.log", strings.Repeat("x", 9000))
		sum, err := c.Summary(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(sum)
		p := sum.Pods[0]
		switch {
		case len(p.VolumeStats) != 1 || *p.VolumeStats[0].UsedBytes < 100_000 || *p.VolumeStats[0].CapacityBytes == 0:
			t.Errorf("volumes %s", text)
		case p.Containers[0].Logs == nil || *p.Containers[0].Logs.UsedBytes < 9000:
			t.Errorf("logs %s", text)
		case *p.EphemeralStorage.UsedBytes < 109_000:
			t.Errorf("ephemeral storage %s", text)
		case p.Network.Name != "eth0" || *p.Network.TxErrors != 2 || sum.Node.Network.Name != "ens3" || len(sum.Node.Network.Interfaces) != 1:
			t.Errorf("networks %s", text)
		case *p.ProcessStats.ProcessCount != 3 || *sum.Node.Rlimit.MaxPID != 62000 || *sum.Node.Rlimit.NumOfRunningProcesses != 345:
			t.Errorf("processes %s", text)
		case sum.Node.Runtime.ImageFs.CapacityBytes == nil || sum.Node.Fs.UsedBytes == nil:
			t.Errorf("file systems %s", text)
		}
	})
}

// Each rate counts from the look before, whoever looked; the first has a second
// look half a second later.
func TestRates(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		c := looker(t, h, critest.New(t), "systemd", parsePod(t, webPod))
		const pod = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podabc.slice/cpu.stat"
		look := func() (*uint64, time.Duration) {
			t.Helper()
			at := time.Now()
			sum, err := c.Summary(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			return sum.Pods[0].CPU.UsageNanoCores, time.Since(at)
		}
		if n, took := look(); n == nil || *n != 0 || took != 500*time.Millisecond {
			t.Errorf("first: %v after %v", n, took)
		}
		time.Sleep(4 * time.Second)
		put(t, h.Cgroup, pod, "usage_usec 72000000\n")
		if n, took := look(); n == nil || *n != 500_000_000 || took != 0 {
			t.Errorf("2 s in 4 s: %v after %v", *n, took)
		}
		put(t, h.Cgroup, pod, "usage_usec 99000000\n")
		if n, _ := look(); *n != 500_000_000 {
			t.Errorf("asked again at once: %v", *n)
		}
		time.Sleep(5 * time.Second)
		put(t, h.Cgroup, pod, "usage_usec 1000000\n") // another pod of that uid, or the counter began again
		if n, took := look(); n == nil || *n != 0 || took == 0 {
			t.Errorf("after a new start: %v after %v", n, took)
		}
		time.Sleep(2 * time.Minute)
		if _, took := look(); took == 0 {
			t.Error("what is older than a minute is not the present")
		}
	})
}

// Pods whose cgroups cannot be found are told of by the runtime.
func TestWithoutCgroups(t *testing.T) {
	rows := []struct {
		name   string
		faults []*critest.Fault
		want   string
		failed bool
	}{
		{"the runtime tells all", nil, "pod 2000000000 3000 eth0, container 2000000000 3000", false},
		{"it cannot tell of sandboxes", []*critest.Fault{critest.On("ListPodSandboxStats").Fail(codes.Unimplemented, "unknown method")},
			"pod 2000000000 3000 , container 2000000000 3000", false},
		{"it tells of sandboxes only", []*critest.Fault{critest.On("ListContainerStats").Fail(codes.Internal, "no")}, "pod 2000000000 3000 eth0, container - -", true},
		{"it tells nothing", []*critest.Fault{critest.On("ListPodSandboxStats").Fail(codes.Internal, "no"), critest.On("ListContainerStats").Fail(codes.Internal, "no")},
			"pod - - , container - -", true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			h := plant(t, "v2")
			synctest.Test(t, func(t *testing.T) {
				r := critest.New(t)
				id := runPod(t, r, "web-n", "abc")
				r.SetUse("app", critest.Use{CPU: 2 * time.Second, WorkingSet: 3000, Received: 7})
				for _, f := range row.faults {
					r.Fault(f)
				}
				c := looker(t, h, r, "none", parsePod(t, strings.ReplaceAll(webPod, "c1c1", id)))
				sum, err := c.Summary(t.Context(), true)
				if err != nil {
					t.Fatal(err)
				}
				p := sum.Pods[0]
				main := ""
				if p.Network != nil {
					main = p.Network.Name
				}
				got := "pod " + told(p.CPU, p.Memory) + " " + main + ", container " + told(p.Containers[0].CPU, p.Containers[0].Memory)
				if got != row.want {
					t.Errorf("got %q, want %q", got, row.want)
				}
				text, err := c.Resource(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if failed := strings.Contains(string(text), "\nresource_scrape_error 1\n"); failed != row.failed {
					t.Errorf("resource_scrape_error:\n%s", text)
				}
				lint(t, string(text))
			})
		})
	}
}

func told(c *statsapi.CPUStats, m *statsapi.MemoryStats) string {
	out := []string{"-", "-"}
	if c != nil {
		b, _ := json.Marshal(c.UsageCoreNanoSeconds)
		out[0] = string(b)
	}
	if m != nil {
		b, _ := json.Marshal(m.WorkingSetBytes)
		out[1] = string(b)
	}
	return strings.Join(out, " ")
}

// With cgroups the runtime is not troubled, but for what only it knows.
func TestTheRuntimeIsAskedForLittle(t *testing.T) {
	h := plant(t, "v1")
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		c := looker(t, h, r, "cgroupfs", parsePod(t, webPod))
		for range 3 {
			for _, ask := range []func(context.Context) ([]byte, error){c.Resource, c.Cadvisor} {
				if _, err := ask(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * time.Second)
		}
		if n := len(r.Calls()); n != 0 {
			t.Errorf("metrics cost %d calls", n)
		}
		for range 3 {
			if _, err := c.Summary(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		if n := len(r.Calls()); n != 2 {
			t.Errorf("three summaries cost %d calls, want one look of two", n)
		}
	})
}

// Who is root in a pod names its interfaces, by any bytes but a blank, a slash and a colon. A scraper refuses a page with
// one label that is no UTF-8, and with it what all others use.
func TestAnInterfaceWithAnOddNameHidesNothing(t *testing.T) {
	h := plant(t, "v2")
	put(t, h.Proc, "4700/net/dev", "Inter-|   Receive\n face |bytes\na\xff\"\\b: 700 7 0 1 0 0 0 0 900 9 2 0 0 0 0 0\n")
	c := looker(t, h, critest.New(t), "systemd", parsePod(t, webPod))
	page, err := c.Cadvisor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, m := range families["container_network_receive_bytes_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "pod" && l.GetValue() != "" {
				got = m.String()
			}
		}
	}
	if !utf8.Valid(page) || !strings.Contains(got, "700") {
		t.Errorf("the page is UTF-8: %v; of the pod it has %q", utf8.Valid(page), got)
	}
}
