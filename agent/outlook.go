package agent

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/outlook"
	"monopod/agent/panics"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/manifests"
)

// outlookRequest asks the sync loop what manifests would change.
type outlookRequest struct {
	asked  *outlook.Asked
	answer chan outlookAnswer // one slot
}

type outlookAnswer struct {
	report *outlook.Report
	err    error // a panic
}

// outlook returns what manifests would change. It changes nothing.
func (a *applier) outlook(asked *outlook.Asked) (out outlookAnswer) {
	err := panics.Contain(func() {
		n := a.outlookNode()
		report := n.Of(a.withTags(asked))
		out.report = &report
	})
	if err != nil {
		a.faults.shared.Metrics.Panic()
		a.shared.Log.Error("cannot say what manifests would change", panics.Logged(err)...)
		out = outlookAnswer{err: err}
	}
	return out
}

// withTags returns the request with what the tags mean that its pods follow.
func (a *applier) withTags(asked *outlook.Asked) *outlook.Asked {
	out := *asked
	out.Pods = slices.Clone(asked.Pods)
	for k, v := range out.Pods {
		p := &manifests.Pod{Pod: v.Pod, File: v.File, Digest: v.Digest}
		if t := a.pods.see(p.Key()).tags; t != nil && a.follow.follows(p) {
			p = withTags(p, t.refsOf(p))
			out.Pods[k] = outlook.Version{Pod: p.Pod, File: p.File, Digest: p.Digest}
		}
	}
	return &out
}

// outlookNode returns the present state of the node as the input of outlook.
func (a *applier) outlookNode() *outlook.Node {
	w := a.world()
	w.Room = a.table.Fits
	n := &outlook.Node{World: w, Objects: a.shared.Disk.Objects.Now(), Record: a.recordOf,
		Reported: func(key manifests.Key) (*v1.Pod, bool) { return a.shared.Store.Pod(key.String()) }}
	for key := range a.pods.all {
		n.Names = append(n.Names, key)
	}
	return n
}

// recordOf returns an up-to-date copy of the record of a pod name.
func (a *applier) recordOf(key manifests.Key) rollout.Record {
	r := a.pods.see(key).Record
	a.observe(&r)
	return r
}

// outlook handles a request of the endpoint for what manifests would change; it has an
// outlook.Asked.
func (a *Agent) outlook(ctx context.Context, request io.Reader) (any, error) {
	var asked outlook.Asked
	err := json.NewDecoder(request).Decode(&asked)
	if err != nil {
		return nil, &status.Refusal{Why: "the request says no pods that this agent can read: " + err.Error()}
	}
	for _, p := range asked.Pods {
		if p.Pod == nil {
			return nil, &status.Refusal{Why: "the request has a pod that says nothing"}
		}
	}
	return a.sync.Outlook(ctx, &asked)
}
