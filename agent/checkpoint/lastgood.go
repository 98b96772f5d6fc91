package checkpoint

import "monopod/manifests"

// LastGood returns the last good versions of the pods by their checkpoints, one
// per key. The Source uses them while the manifests cannot be read.
func LastGood(all []*Checkpoint) []*manifests.Pod {
	newest := map[manifests.Key]*Checkpoint{}
	for _, c := range all {
		if c.IsRemoving() {
			continue
		}
		if old := newest[c.Key()]; old == nil || old.Accepted.Before(&c.Accepted) {
			newest[c.Key()] = c
		}
	}
	var pods []*manifests.Pod
	for _, c := range newest {
		pods = append(pods, c.manifest())
	}
	return pods
}
