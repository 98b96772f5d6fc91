// Package overview returns the present state, for requests and scrapes.
package overview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/archives"
	"monopod/agent/image"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/status"
	"monopod/manifests"
)

// collectorTimeout bounds one answer about images or running pods.
const collectorTimeout = 20 * time.Second

// Images returns the images of the runtime, with the users of each and whether
// it would be collected.
func Images(ctx context.Context, node string, images *image.Collector, archived []archives.Known) (*status.Images, error) {
	ctx, cancel := context.WithTimeout(ctx, collectorTimeout)
	defer cancel()
	entries, disk, err := images.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &status.Images{Node: node, Images: []status.Image{}}
	if disk != nil {
		out.Disk = &status.ImageDisk{Dir: disk.Dir, Capacity: disk.Capacity, Available: disk.Available, UsedPercent: disk.Used(),
			High: images.Bounds().High, Low: images.Bounds().Low}
	}
	if s := images.Shortfall(); s.Bytes > 0 {
		out.Missing, out.MissingSince = s.Bytes, s.Since
	}
	for _, e := range entries {
		out.Images = append(out.Images, status.Image{ID: e.ID, Names: e.Names, Digests: e.Digests, Size: e.Size, Pinned: e.Pinned, Archive: e.Archive,
			Users: e.Users, FirstSeen: e.FirstSeen, LastUsed: e.LastUsed, Collect: e.Collect, Why: e.Why})
	}
	for _, a := range archived {
		out.Archives = append(out.Archives, status.Archive{Path: a.Path, State: string(a.State), Images: a.Names(), Why: a.Why})
	}
	return out, nil
}

// Running returns our pods in the runtime that have a ready sandbox or a running
// container, with names and images only.
func Running(ctx context.Context, l *pleg.Lister) ([]v1.Pod, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, collectorTimeout, fmt.Errorf("the runtime did not list its pods within %s: is it stuck?", collectorTimeout))
	defer cancel()
	all, err := l.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var pods []v1.Pod
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b manifests.Key) int { return strings.Compare(a.String(), b.String()) }) {
		pods = append(pods, runningOf(key, all[key])...)
	}
	return pods, nil
}

// runningOf returns the running instances of a pod name, sorted by uid.
func runningOf(key manifests.Key, l *pleg.Listed) []v1.Pod {
	byUID := map[string]*v1.Pod{}
	of := func(labels map[string]string) *v1.Pod {
		uid := labels[podspec.LabelPodUID]
		if byUID[uid] == nil {
			byUID[uid] = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(uid)}}
		}
		return byUID[uid]
	}
	for _, s := range l.Sandboxes {
		if s.State == rt.PodSandboxState_SANDBOX_READY {
			of(s.Labels)
		}
	}
	for _, c := range l.Containers {
		if c.State != rt.ContainerState_CONTAINER_RUNNING {
			continue
		}
		image := c.GetImage().GetUserSpecifiedImage()
		if image == "" {
			image = c.GetImage().GetImage()
		}
		p := of(c.Labels)
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c.GetMetadata().GetName(), Image: image})
	}
	var pods []v1.Pod
	for _, uid := range slices.Sorted(maps.Keys(byUID)) {
		p := byUID[uid]
		slices.SortFunc(p.Spec.Containers, func(a, b v1.Container) int { return strings.Compare(a.Name, b.Name) })
		pods = append(pods, *p)
	}
	return pods
}
