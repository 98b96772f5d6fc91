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

// ImageNeeds are the images that pods name, for the image collector: those of
// all desired pods, whether they run or wait for an allocation, and those of all
// versions with a checkpoint. The sync loop publishes; any goroutine may read.
type ImageNeeds struct {
	Root    *checkpoint.Root
	Changed func() // called after the first Publish

	pods atomic.Pointer[[]*manifests.Pod] // nil: no manifests have been read yet
}

// Publish stores the desired pods, which must not be changed afterwards. It is called before any of them
// starts, so that no image is removed which is about to be used.
func (n *ImageNeeds) Publish(pods []*manifests.Pod) {
	if n == nil {
		return
	}
	if n.pods.Swap(&pods) == nil {
		n.Changed()
	}
}

// All returns the images that pods need, false before the first Publish.
func (n *ImageNeeds) All() ([]image.Need, bool) {
	published := n.pods.Load()
	if published == nil {
		return nil, false
	}
	needs := []image.Need{}
	for _, p := range *published {
		needs = append(needs, imagesOf(p.Pod)...)
	}
	checkpoints, err := n.Root.Checkpoints(slog.New(slog.DiscardHandler)) // unusable ones were logged at the start
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
