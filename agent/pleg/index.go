package pleg

import (
	"maps"
	"path/filepath"
	"slices"
	"sync"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/logrotate"
	"monopod/agent/podspec"
	"monopod/cri"
	"monopod/manifests"
)

// Listed is what the runtime has of one pod name. It never changes.
type Listed struct {
	Sandboxes  []*rt.PodSandbox
	Containers []*rt.Container

	print uint64                // its fingerprint
	logs  []logrotate.Container // the logs of the running containers
}

// Uids returns the uids of everything listed under the name.
func (p *Listed) Uids() map[string]bool {
	uids := map[string]bool{}
	for _, s := range p.Sandboxes {
		uids[s.Labels[podspec.LabelPodUID]] = true
	}
	for _, c := range p.Containers {
		uids[c.Labels[podspec.LabelPodUID]] = true
	}
	return uids
}

// has reports whether anything has the uid.
func (p *Listed) has(uid string) bool {
	return slices.ContainsFunc(p.Sandboxes, func(s *rt.PodSandbox) bool { return s.Labels[podspec.LabelPodUID] == uid }) ||
		slices.ContainsFunc(p.Containers, func(c *rt.Container) bool { return c.Labels[podspec.LabelPodUID] == uid })
}

// index is the last listing of the runtime, by pod name. An update costs only what differs from the
// listing before: a changed pod is replaced. Any goroutine may use it.
type index struct {
	mu   sync.RWMutex
	pods map[manifests.Key]*Listed
}

// change applies the differences of a listing. podLogs is the folder of pods' logs.
func (x *index) change(podLogs string, sandboxes *cri.Changes[rt.PodSandbox], containers *cri.Changes[rt.Container]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	next := map[manifests.Key]*Listed{}
	for _, s := range sandboxes.Gone {
		p := x.copied(next, s.Labels)
		p.Sandboxes = slices.DeleteFunc(p.Sandboxes, func(one *rt.PodSandbox) bool { return one == s })
	}
	for _, c := range containers.Gone {
		p := x.copied(next, c.Labels)
		p.Containers = slices.DeleteFunc(p.Containers, func(one *rt.Container) bool { return one == c })
	}
	for _, s := range sandboxes.Added {
		p := x.copied(next, s.Labels)
		p.Sandboxes = append(p.Sandboxes, s)
	}
	for _, c := range containers.Added {
		if isFileName(c.Metadata.GetName()) { // no container of the agent has another kind of name; it must not lead to other files
			p := x.copied(next, c.Labels)
			p.Containers = append(p.Containers, c)
		}
	}
	x.replace(podLogs, next)
}

// copied returns the copy in next of the pod with these labels, which is to replace it. If no pod
// of the agent can have them, it returns a value that is dropped. x.mu is held.
func (x *index) copied(next map[manifests.Key]*Listed, labels map[string]string) *Listed {
	if !wellFormed(labels) {
		return &Listed{}
	}
	key := KeyOf(labels)
	if next[key] == nil {
		next[key] = &Listed{}
		if was := x.pods[key]; was != nil {
			next[key].Sandboxes, next[key].Containers = slices.Clone(was.Sandboxes), slices.Clone(was.Containers)
		}
	}
	return next[key]
}

// replace replaces pods by name. x.mu is held.
func (x *index) replace(podLogs string, next map[manifests.Key]*Listed) {
	if x.pods == nil {
		x.pods = make(map[manifests.Key]*Listed, len(next))
	}
	for key, p := range next {
		if len(p.Sandboxes)+len(p.Containers) == 0 {
			delete(x.pods, key)
			continue
		}
		p.print, p.logs = p.fingerprint(), logsOf(podLogs, key, p)
		x.pods[key] = p
	}
}

// logsOf returns the running containers of a pod, with their log files in the present log folder.
func logsOf(podLogs string, key manifests.Key, p *Listed) (all []logrotate.Container) {
	for _, c := range p.Containers {
		if c.State == rt.ContainerState_CONTAINER_RUNNING {
			dir := podspec.LogDir(podLogs, key, c.Labels[podspec.LabelPodUID])
			all = append(all, logrotate.Container{ID: c.Id, Log: filepath.Join(dir, podspec.LogPath(c.Metadata.GetName(), c.Metadata.GetAttempt()))})
		}
	}
	return all
}

// of returns the listing of a pod name.
func (x *index) of(key manifests.Key) *Listed {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p := x.pods[key]; p != nil {
		return p
	}
	return &Listed{}
}

// all returns all pods. The caller owns the map.
func (x *index) all() map[manifests.Key]*Listed {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.pods)
}

// NamesOf returns the pod names that have anything with the uid; none if x is nil.
func (x *index) NamesOf(uid string) (names []manifests.Key) {
	if x == nil {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for key, p := range x.pods {
		if p.has(uid) {
			names = append(names, key)
		}
	}
	return names
}

// prints returns the fingerprints of all pods.
func (x *index) prints() map[manifests.Key]uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := make(map[manifests.Key]uint64, len(x.pods))
	for key, p := range x.pods {
		all[key] = p.print
	}
	return all
}

// logs returns all running containers, with their logs.
func (x *index) logs() []logrotate.Container {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := make([]logrotate.Container, 0, len(x.pods))
	for _, p := range x.pods {
		all = append(all, p.logs...)
	}
	return all
}
