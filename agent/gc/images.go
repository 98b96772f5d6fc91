package gc

import (
	"log/slog"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/image"
	"monopod/manifests"
)

// ImageNeeds tells the collector of images which ones pods name: those of all
// manifests that are accepted, whether they run or wait for a place, and those of
// all versions that have a checkpoint. The sync loop publishes; anybody may ask.
type ImageNeeds struct {
	Root    *checkpoint.Root
	Changed func() // called when it is known for the first time

	pods atomic.Pointer[[]image.Need] // nil: no manifests were read yet
}

// Publish takes note of the pods that are accepted now. It comes before any of
// them is started, so that no image goes which is about to be used.
func (n *ImageNeeds) Publish(pods []*manifests.Pod) {
	if n == nil {
		return
	}
	needs := []image.Need{}
	for _, p := range pods {
		needs = append(needs, imagesOf(p.Pod)...)
	}
	if n.pods.Swap(&needs) == nil {
		n.Changed()
	}
}

// All returns what pods need, false before the manifests were read.
func (n *ImageNeeds) All() ([]image.Need, bool) {
	published := n.pods.Load()
	if published == nil {
		return nil, false
	}
	needs := slices.Clip(*published)
	checkpoints, err := n.Root.Checkpoints(slog.New(slog.DiscardHandler)) // the agent has said already which are unusable
	if err != nil {
		return nil, false
	}
	for _, c := range checkpoints {
		if !c.IsRemoving() {
			needs = append(needs, imagesOf(c.Pod)...)
		}
	}
	return needs, true
}

// imagesOf returns the images that a pod names.
func imagesOf(p *v1.Pod) []image.Need {
	var needs []image.Need
	need := func(name string) {
		if name != "" {
			needs = append(needs, image.Need{Image: name, Pod: p.Namespace + "/" + p.Name})
		}
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		need(c.Image)
	}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil {
			need(v.Image.Reference)
		}
	}
	return needs
}
