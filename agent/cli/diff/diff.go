// Package diff reports what manifests would change of the existing pods: by the agent, or if none
// runs by what the last one left.
package diff

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/status"
	"monopod/manifests"
)

// staying are the pods of an agent, by name, without those that are being removed: they would come
// back as others.
func staying(k *client.Known) map[manifests.Key]*v1.Pod {
	has := map[manifests.Key]*v1.Pod{}
	for i := range k.Pods {
		if p := &k.Pods[i]; p.DeletionTimestamp == nil {
			has[manifests.KeyOf(p)] = p
		}
	}
	return has
}

// IsAccepted returns whether a version is one that an agent has, which it reads by the rules of
// its acceptance.
func IsAccepted(k *client.Known) func(*manifests.Pod) bool {
	has := staying(k)
	return func(p *manifests.Pod) bool {
		was := has[p.Key()]
		return was != nil && manifests.AsGiven([]*manifests.Pod{accepted(was)})[0].Digest == p.Digest
	}
}

// accepted returns a reported pod as it was accepted, without its report.
func accepted(reported *v1.Pod) *manifests.Pod {
	p := status.WithoutReport(reported)
	return &manifests.Pod{Pod: p, Digest: manifests.Restored(p)}
}
