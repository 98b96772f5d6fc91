package stats

import (
	"context"
	"time"
)

// resource is a metric of /metrics/resource, per node, pod or container.
type resource struct {
	name, kind, help string
	of               func(*use) *uint64
	per              float64 // divisor of the value for the metric's unit, 1 if it is the same
}

// The names and labels are the kubelet's (pkg/kubelet/metrics/collectors).
var resources = []resource{
	{"cpu_usage_seconds_total", counter, "Time of the processors that was used, in core-seconds.", func(u *use) *uint64 { return u.CPU }, 1e9},
	{"memory_working_set_bytes", gauge, "Memory in use that is not easily freed, in bytes.", func(u *use) *uint64 { return u.WorkingSet }, 1},
	{"swap_usage_bytes", gauge, "Swap in use, in bytes.", func(u *use) *uint64 { return u.Swap }, 1},
}

var swapLimit = resource{"swap_limit_bytes", gauge, "Swap that may be used, in bytes.", func(u *use) *uint64 { return u.SwapLimit }, 1}

// Resource returns /metrics/resource.
func (c *Collector) Resource(ctx context.Context) ([]byte, error) {
	s, err := c.look(ctx, false)
	if err != nil {
		return nil, err
	}
	var t text
	for _, r := range append(resources, swapLimit) {
		r.family(&t, "container")
		for _, p := range s.Pods {
			for _, k := range p.Containers {
				r.value(&t, "container", k.Use, label{"container", k.Name}, label{"namespace", p.Namespace}, label{"pod", p.Name})
			}
		}
	}
	t.family("container_start_time_seconds", gauge, "When the container started, in seconds since 1970.")
	for _, p := range s.Pods {
		for _, k := range p.Containers {
			if at := k.started(); !at.IsZero() {
				t.value("container_start_time_seconds", []label{{"container", k.Name}, {"namespace", p.Namespace}, {"pod", p.Name}},
					float64(at.UnixNano())/1e9, time.Time{})
			}
		}
	}
	for _, r := range resources {
		r.family(&t, "node")
		r.value(&t, "node", s.Node)
	}
	for _, r := range resources {
		r.family(&t, "pod")
		for _, p := range s.Pods {
			r.value(&t, "pod", p.Use, label{"namespace", p.Namespace}, label{"pod", p.Name})
		}
	}
	t.family("resource_scrape_error", gauge, "1 if something could not be found out and is left out, else 0.")
	failed := 0.0
	if s.Trouble != nil || s.Node.CPU == nil {
		failed = 1
	}
	t.value("resource_scrape_error", nil, failed, time.Time{})
	return t.Bytes(), nil
}

func (r *resource) family(t *text, of string) { t.family(of+"_"+r.name, r.kind, r.help) }

func (r *resource) value(t *text, of string, u *use, labels ...label) {
	if u == nil {
		return
	}
	if n := r.of(u); n != nil {
		t.value(of+"_"+r.name, labels, float64(*n)/r.per, u.Time)
	}
}
