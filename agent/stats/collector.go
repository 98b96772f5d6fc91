package stats

import (
	"context"
	"log/slog"
	"time"

	"github.com/containerd/cgroups/v3"
	v1 "k8s.io/api/core/v1"

	"monopod/cri"
)

const (
	// usageFor is how long a sample of usage is valid: concurrent callers share one.
	usageFor = time.Second
	// disksFor is how long disk usage is valid; runtimes count theirs every ten seconds. After a
	// count there is a pause of at least disksShare times its duration, so that frequent requests
	// do not keep a disk busy.
	disksFor   = 10 * time.Second
	disksShare = 50
	disksMost  = 5 * time.Minute
	// askTimeout bounds one sample.
	askTimeout = 10 * time.Second
	// runtimeTimeout bounds the runtime's part of it.
	runtimeTimeout = 5 * time.Second
	// countTimeout bounds the counting of files; those not counted by then are left out.
	countTimeout = 3 * time.Second
)

// Config is what to measure.
type Config struct {
	Host    Host
	CRI     *cri.Client
	Labels  func() map[string]string // of the agent's objects in the runtime; nil: all are listed
	Node    string                   // its name
	Booted  time.Time
	Root    string                 // of the agent
	PodLogs string                 // folder
	Pods    func() []*v1.Pod       // with their status, in order
	Cgroup  func(*v1.Pod) string   // of a pod, "" if it has none
	AllPods func() (cgroup string) // of all pods, "" if there is none
	Log     *slog.Logger
}

// Collector measures on request. Any goroutine may use it.
type Collector struct {
	config Config
	rates  rates // guarded by the turn of usage
	usage  *cached[*sample]
	disks  *cached[*disks]
}

// New returns a collector without a sample.
func New(c Config) *Collector {
	c.Host = c.Host.complete()
	if c.Labels == nil {
		c.Labels = func() map[string]string { return nil }
	}
	return &Collector{config: c, rates: rates{}, usage: newCached[*sample](), disks: newCached[*disks]()}
}

// sample is one measurement of usage. It is not changed afterwards.
type sample struct {
	Node     *use
	Links    []link // of the machine
	MainLink string // the name of the main one
	System   []named
	Pods     []*podUse
	Rated    bool  // use has its rates
	Trouble  error // why something is left out; nil: it is complete
}

// named is the use of something other than a pod.
type named struct {
	Name, Path string
	*use
}

// podUse is the use of one pod; Use is nil if only that of its containers is known.
type podUse struct {
	*v1.Pod
	Path                 string // of its cgroup, "" if it is not known
	Use                  *use
	Containers           []*containerUse // the running ones
	Sandbox, SandboxPath string          // its id and its cgroup, "" if they are not known
	Links                []link
}

// containerUse is the use of one container; Use is nil if it is not known.
type containerUse struct {
	*v1.ContainerStatus
	ID   string // without the runtime's name
	Path string // of its cgroup, "" if it is not known
	Use  *use
}

// started returns when the container started, zero if the runtime does not report it: then its
// status has 1970, as a kubelet's.
func (k *containerUse) started() time.Time {
	if at := k.State.Running.StartedAt.Time; at.Unix() > 0 {
		return at
	}
	return time.Time{}
}

// look returns the current usage. Rates take half a second unless they were requested recently.
func (c *Collector) look(ctx context.Context, rated bool) (*sample, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	fits := func(s *sample) bool { return s.Rated || !rated }
	return c.usage.get(ctx, usageFor, fits, func(ctx context.Context) (*sample, error) {
		s := c.read(ctx)
		if rated {
			if err := c.rate(ctx, s); err != nil {
				return nil, err
			}
		}
		return s, ctx.Err()
	})
}

// read takes a sample without rates.
func (c *Collector) read(ctx context.Context) *sample {
	h := c.config.Host.hierarchy()
	s := &sample{Node: c.config.Host.use(), Links: c.config.Host.ownLinks(), MainLink: c.config.Host.mainLink()}
	if path := c.config.AllPods(); path != "" {
		if u := h.read(path); u != nil {
			s.System = append(s.System, named{"pods", path, u})
		}
	}
	if path := ownCgroup(c.config.Host.Proc, h.unified); path != "" {
		if u := h.read(path); u != nil {
			s.System = append(s.System, named{"kubelet", path, u})
		}
	}
	incomplete := false
	for _, pod := range c.config.Pods() {
		if p := readPod(c.config.Host, h, pod, c.config.Cgroup(pod)); p != nil {
			s.Pods = append(s.Pods, p)
			incomplete = incomplete || p.incomplete()
		}
	}
	if incomplete {
		s.Trouble = c.askRuntime(ctx, s)
	}
	return s
}

// ownCgroup returns the agent's cgroup, "" if it is the root.
func ownCgroup(proc string, unified bool) string {
	controllers, path, _ := cgroups.ParseCgroupFileUnified(proc + "/self/cgroup")
	if !unified {
		path = controllers["memory"]
	}
	if path == "/" {
		return ""
	}
	return path
}
