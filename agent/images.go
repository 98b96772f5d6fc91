package agent

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/image"
	"monopod/agent/status"
	"monopod/manifests"
)

// collectorTimeout bounds one answer about the images.
const collectorTimeout = 20 * time.Second

// imageNeeds tells the collector of images which ones pods name: those of all
// manifests that are accepted, whether they run or wait for a place, and those of
// all versions that have a checkpoint. The sync loop publishes; anybody may ask.
type imageNeeds struct {
	root    *root
	changed func() // called when it is known for the first time

	pods atomic.Pointer[[]image.Need] // nil: no manifests were read yet
}

// publish takes note of the pods that are accepted now. It comes before any of
// them is started, so that no image goes which is about to be used.
func (n *imageNeeds) publish(pods []*manifests.Pod) {
	if n == nil {
		return
	}
	needs := []image.Need{}
	for _, p := range pods {
		needs = append(needs, imagesOf(p.Pod)...)
	}
	if n.pods.Swap(&needs) == nil {
		n.changed()
	}
}

// all returns what pods need, false before the manifests were read.
func (n *imageNeeds) all() ([]image.Need, bool) {
	published := n.pods.Load()
	if published == nil {
		return nil, false
	}
	needs := slices.Clip(*published)
	checkpoints, err := n.root.checkpoints(slog.New(slog.DiscardHandler)) // the agent has said already which are unusable
	if err != nil {
		return nil, false
	}
	for _, c := range checkpoints {
		if !c.retired() {
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

// listImages answers who uses which image and what is to become of it.
func (a *Agent) listImages(ctx context.Context) (*status.Images, error) {
	ctx, cancel := context.WithTimeout(ctx, collectorTimeout)
	defer cancel()
	entries, disk, err := a.images.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &status.Images{Node: a.cfg.NodeName, Images: []status.Image{}}
	if disk != nil {
		out.Disk = &status.ImageDisk{Dir: disk.Dir, Capacity: disk.Capacity, Available: disk.Available, UsedPercent: disk.Used(),
			High: a.images.Bounds().High, Low: a.images.Bounds().Low}
	}
	if s := a.images.Shortfall(); s.Bytes > 0 {
		out.Missing, out.MissingSince = s.Bytes, s.Since
	}
	for _, e := range entries {
		out.Images = append(out.Images, status.Image{ID: e.ID, Names: e.Names, Digests: e.Digests, Size: e.Size, Pinned: e.Pinned,
			Users: e.Users, FirstSeen: e.FirstSeen, LastUsed: e.LastUsed, Collect: e.Collect, Why: e.Why})
	}
	return out, nil
}
