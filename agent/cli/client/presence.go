package client

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// presence distinguishes a pod that is gone from one that an agent which has just started does not
// report yet: such an agent has not reported its manifests, while the agent of the first request
// had. One goroutine uses it.
type presence struct {
	socket string
	ready  bool   // the agent had reported its manifests at first
	absent string // the pod that the last complete list lacks; "": none
}

func newPresence(ctx context.Context, socket string) (*presence, error) {
	ready, err := hasManifests(ctx, socket)
	return &presence{socket: socket, ready: ready}, err
}

// look requests a pod. It is gone if two complete lists in a row lack it; now is nil while it is
// not reported.
func (h *presence) look(ctx context.Context, p *v1.Pod) (now *v1.Pod, gone bool, err error) {
	key, before := p.Namespace+"/"+p.Name, h.absent
	h.absent = ""
	var list v1.PodList
	if err := GetJSON(ctx, h.socket, "/pods", &list); err != nil {
		return nil, false, err
	}
	if k := slices.IndexFunc(list.Items, func(i v1.Pod) bool { return i.Namespace == p.Namespace && i.Name == p.Name }); k >= 0 {
		return &list.Items[k], false, nil
	}
	ready, err := hasManifests(ctx, h.socket)
	if err != nil || h.ready && !ready {
		return nil, false, err
	}
	h.absent = key
	return nil, before == key, nil
}

// AllPods returns the agent's pods, and whether these are all: an agent that has just started does
// not report all yet.
func AllPods(ctx context.Context, socket string) (pods []v1.Pod, complete bool, err error) {
	complete, err = hasManifests(ctx, socket) // before the list, which has all that was known then
	if err != nil {
		return nil, false, err
	}
	var list v1.PodList
	err = GetJSON(ctx, socket, "/pods", &list)
	if err == nil && complete { // and after it: the list may be that of a successor which has just started
		complete, err = hasManifests(ctx, socket)
	}
	return list.Items, complete, err
}

// hasManifests reports whether the agent has reported all its manifests, and so knows all pods.
func hasManifests(ctx context.Context, socket string) (bool, error) {
	var m status.Manifests
	err := GetJSON(ctx, socket, "/manifests", &m)
	return isRead(m), err
}

// isRead reports whether a report is of manifests that were read.
func isRead(m status.Manifests) bool {
	return m.Dir != "" || slices.ContainsFunc(m.Files, func(f status.File) bool { return f.Path != "" })
}

// AreAllReported reports whether each pod that a file gives is among these. An agent that has just
// started reports one after the other.
func AreAllReported(pods []v1.Pod, m status.Manifests) bool {
	there := map[string]bool{}
	for k := range pods {
		there[pods[k].Namespace+"/"+pods[k].Name] = true
	}
	isMissing := func(pod string) bool { return !there[pod] }
	return !slices.ContainsFunc(m.Files, func(f status.File) bool { return slices.ContainsFunc(f.Pods, isMissing) })
}
