package agent

import (
	"sync/atomic"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A runtime that does not say how a container or sandbox is has not said that
// it is gone: what runs is left alone until the runtime says more.
func TestAnAnswerWithoutAStatusLeavesAPodAlone(t *testing.T) {
	for name, empty := range map[string]func(reply any){
		"container": func(reply any) {
			if r, ok := reply.(*rt.ContainerStatusResponse); ok {
				r.Status = nil
			}
		},
		"sandbox": func(reply any) {
			if r, ok := reply.(*rt.PodSandboxStatusResponse); ok {
				r.Status = nil
			}
		},
		"name": func(reply any) {
			if r, ok := reply.(*rt.ListContainersResponse); ok {
				for _, c := range r.Containers {
					c.Metadata = nil
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(manifest("web", "img:1"))
				made := r.made()
				r.kill()
				var on atomic.Bool
				on.Store(true)
				r.mangle = func(_, reply any) {
					if on.Load() {
						empty(reply)
					}
				}
				r.start()
				r.want(manifest("web", "img:1"))
				r.after(time.Minute)
				r.expect("default/web-n/c")
				if r.made() != made {
					r.Errorf("something was made of a pod that is there")
				}
				on.Store(false)
				r.after(time.Minute)
				if st := r.status("default/web-n"); len(st.ContainerStatuses) != 1 || !st.ContainerStatuses[0].Ready || r.made() != made {
					r.Errorf("afterwards: made %d, want %d; status %+v", r.made(), made, st)
				}
			})
		})
	}
}
