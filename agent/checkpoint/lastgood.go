package checkpoint

import "monopod/manifests"

// LastGood returns the last good versions of the pods according to their checkpoints, one for each
// key. The Source uses them while the manifests cannot be read.
func LastGood(all []*Checkpoint) []*manifests.Pod {
	var pods []*manifests.Pod
	for _, c := range Accepted(all) {
		pods = append(pods, c.manifest())
	}
	return pods
}
