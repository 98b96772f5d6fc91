package gc

import (
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/image"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// ImageNeeds is what pods need on this machine. Images: those of all desired pods, whether they
// run or wait for an allocation, and those of all versions with a checkpoint. Folders: those of
// all desired pods. The sync loop publishes; any goroutine may read. With nil, nothing is known.
type ImageNeeds struct {
	Root    *checkpoint.Root
	Changed func() // called after the first Publish

	pods     atomic.Pointer[[]*manifests.Pod] // nil: no manifests have been read yet
	complete atomic.Bool
}

// Publish stores the desired pods, which must not be changed afterwards. It is called before any
// of them starts, so that no image is removed that is about to be used.
func (n *ImageNeeds) Publish(pods []*manifests.Pod) {
	if n == nil {
		return
	}
	if n.pods.Swap(&pods) == nil {
		n.Changed()
	}
}

// SetComplete sets whether the published pods are all that manifests give.
func (n *ImageNeeds) SetComplete(complete bool) {
	if n != nil {
		n.complete.Store(complete)
	}
}

// lacks reports whether it is certain that no manifest gives a pod of the uid.
func (n *ImageNeeds) lacks(uid string) bool {
	if n == nil || !n.complete.Load() {
		return false
	}
	published := n.pods.Load()
	return published != nil && !slices.ContainsFunc(*published, func(p *manifests.Pod) bool { return string(p.UID) == uid })
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
	for _, p := range n.Root.StoredPods() {
		needs = append(needs, imagesOf(p)...)
	}
	return needs, true
}

// Concerns reports whether a pod names one of these images, which go by their full names.
func Concerns(p *v1.Pod, names []string) bool {
	return slices.ContainsFunc(imagesOf(p), func(n image.Need) bool { return slices.Contains(names, image.Canonical(n.Image)) })
}

// imagesOf returns the images that a pod names, and those that the tags mean that it follows.
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
	for _, ref := range annotations.TagImagesOf(p) {
		need(ref)
	}
	return needs
}
