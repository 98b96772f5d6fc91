package gc

import (
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/image"
	"monopod/manifests"
)

// ImageNeeds is what pods need on this machine. Images: those of all desired pods,
// whether they run or wait for an allocation, and those of all versions with a
// checkpoint. Folders: those of all desired pods. The sync loop publishes; any
// goroutine may read. With nil, nothing is known.
type ImageNeeds struct {
	Root    *checkpoint.Root
	Changed func() // called after the first Publish

	desired  atomic.Pointer[desired] // nil: no manifests have been read yet
	complete atomic.Bool
}

// desired is what the desired pods need.
type desired struct {
	images []image.Need
	uids   map[string]bool
}

// Publish stores what the desired pods need. It is called before any of them
// starts, so that no image is removed which is about to be used.
func (n *ImageNeeds) Publish(pods []*manifests.Pod) {
	if n == nil {
		return
	}
	d := &desired{images: []image.Need{}, uids: map[string]bool{}}
	for _, p := range pods {
		d.images = append(d.images, imagesOf(p.Pod)...)
		d.uids[string(p.UID)] = true
	}
	if n.desired.Swap(d) == nil {
		n.Changed()
	}
}

// SetComplete says whether the published pods are all that manifests give.
func (n *ImageNeeds) SetComplete(complete bool) {
	if n != nil {
		n.complete.Store(complete)
	}
}

// lacks reports whether it is certain that no manifest gives a pod of the uid.
func (n *ImageNeeds) lacks(uid string) bool {
	return n != nil && n.complete.Load() && !n.desired.Load().uids[uid]
}

// All returns the images that pods need, false before the first Publish.
func (n *ImageNeeds) All() ([]image.Need, bool) {
	d := n.desired.Load()
	if d == nil {
		return nil, false
	}
	needs := slices.Clip(d.images)
	for _, p := range n.Root.StoredPods() {
		needs = append(needs, imagesOf(p)...)
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
