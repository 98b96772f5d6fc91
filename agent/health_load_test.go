package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/node"
	"monopod/agent/probe"
	"monopod/agent/worker"
	"monopod/cri"
	"monopod/cri/critest"
)

// crowd is how many pods are probed at a time, each by command and by HTTP
// once a second.
const crowd = 200

// canned is a connection to a web server that has one answer.
type canned struct {
	net.Conn
	asked  chan struct{} // closed when something was written
	once   sync.Once
	answer io.Reader
}

func newCanned() *canned {
	return &canned{asked: make(chan struct{}), answer: strings.NewReader("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")}
}

func (c *canned) Write(b []byte) (int, error) {
	c.once.Do(func() { close(c.asked) })
	return len(b), nil
}

func (c *canned) Read(b []byte) (int, error) {
	<-c.asked
	return c.answer.Read(b)
}

func (c *canned) Close() error {
	c.once.Do(func() { close(c.asked) })
	return nil
}

// Whatever the commands take, each pod is asked each second, never more than a
// tenth of a second late.
func TestProbesOfManyPodsAreInTime(t *testing.T) {
	var mu sync.Mutex
	asked := map[string][]time.Time{}
	ask := func(who string) (times int) {
		mu.Lock()
		defer mu.Unlock()
		asked[who] = append(asked[who], time.Now())
		return len(asked[who])
	}
	liveWith(t, func(r *rig) {
		r.facts = func(f *node.Facts) {
			f.Allocatable = maps.Clone(f.Allocatable)
			f.Allocatable[v1.ResourcePods] = *resource.NewQuantity(crowd, resource.DecimalSI)
		}
		r.dial = func(_ context.Context, _, address string) (net.Conn, error) {
			ask(address)
			return newCanned(), nil
		}
	}, func(r *rig) {
		r.OnExec(func(_ context.Context, c critest.Container, _ []string) (string, int32, error) {
			time.Sleep(time.Duration(ask(c.Pod)%10) * 90 * time.Millisecond)
			return "", 0, nil
		})
		var all []string
		for k := range crowd {
			all = append(all, probedManifest(fmt.Sprintf("p%d", k), byExec("liveness")+", readinessProbe: {httpGet: {port: 80}, periodSeconds: 1}"))
		}
		r.want(all...)
		r.after(10 * time.Second)
		mu.Lock()
		clear(asked)
		mu.Unlock()
		r.after(30 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(asked) != 2*crowd {
			r.Fatalf("%d probes of %d were carried out", len(asked), 2*crowd)
		}
		for who, at := range asked {
			if len(at) < 30 || len(at) > 31 {
				r.Errorf("%s was asked %d times in 30 s", who, len(at))
			}
			for k := 1; k < len(at); k++ {
				if gap := at[k].Sub(at[k-1]); gap > 1100*time.Millisecond {
					r.Errorf("%s was not asked for %s", who, gap)
				}
			}
		}
	})
}

// BenchmarkProbes tells what the probes of many pods take, the runtime in
// memory and the web server included; each turn takes a second.
func BenchmarkProbes(b *testing.B) {
	r := critest.New(b)
	client := cri.New(r.Conn())
	pool := &worker.Pool{Cri: client}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	to, _ := url.Parse(server.URL)
	port, _ := strconv.Atoi(to.Port())
	byCommand := &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}}
	byHTTP := &v1.Probe{PeriodSeconds: 1, SuccessThreshold: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt(port)}}}
	for k := range crowd {
		s := probe.NewSet(&pool.Prober, pool.ExecProbe, func() {}, slog.New(slog.DiscardHandler))
		defer s.Close()
		s.Follow([]probe.Target{{ID: running(b, client, k), Began: time.Now(), Adopted: true, Host: to.Hostname(),
			Container: &v1.Container{Name: "c", LivenessProbe: byCommand, ReadinessProbe: byHTTP}}})
	}
	time.Sleep(2 * time.Second)
	r.ForgetCalls()
	began, used := time.Now(), cpuTime(b)
	for b.Loop() {
		time.Sleep(time.Second)
	}
	took, used := time.Since(began), cpuTime(b)-used
	probes := float64(2*crowd) * took.Seconds()
	b.ReportMetric(100*used.Seconds()/took.Seconds(), "%core")
	b.ReportMetric(float64(used.Microseconds())/probes, "cpu-us/probe")
	if n := float64(r.Count("ExecSync")); n < 0.9*probes/2 {
		b.Errorf("%.0f commands were run, want %.0f", n, probes/2)
	}
}

// running starts a container and returns its id.
func running(b *testing.B, c *cri.Client, k int) string {
	pod := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: fmt.Sprint(k), Namespace: "n", Uid: fmt.Sprint(k)}}
	sandbox, err := c.RunSandbox(b.Context(), pod, "")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.PullImage(b.Context(), &rt.ImageSpec{Image: "app"}, nil, pod); err != nil {
		b.Fatal(err)
	}
	config := &rt.ContainerConfig{Metadata: &rt.ContainerMetadata{Name: "c"}, Image: &rt.ImageSpec{Image: "app"}}
	id, err := c.CreateContainer(b.Context(), sandbox, config, pod)
	if err == nil {
		err = c.StartContainer(b.Context(), id)
	}
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// cpuTime returns what this process has taken of the CPUs so far.
func cpuTime(b testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
