package stats

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// disks is one measurement of disk usage. It is not changed afterwards.
type disks struct {
	Until  time.Time           // valid until
	Node   *space              // the file system of the agent's root
	Images *space              // the file system of the images; nil if the runtime does not report it
	Layers map[string]layer    // what containers wrote, by id
	Pods   map[string]podDisks // by uid
}

// layer is what one container wrote to its root file system.
type layer struct{ Used, Inodes *uint64 }

type podDisks struct {
	Logs    map[string]layer // by container
	Volumes []volumeSpace
}

type volumeSpace struct {
	Name     string
	InMemory bool
	*space
}

// files returns the disk usage, at most ten seconds old, or older if counting takes long.
func (c *Collector) files(ctx context.Context) (*disks, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return c.disks.get(ctx, disksMost, func(d *disks) bool { return time.Now().Before(d.Until) }, func(ctx context.Context) (*disks, error) {
		d := &disks{Node: filesystem(c.config.Root), Layers: map[string]layer{}, Pods: map[string]podDisks{}}
		c.askLayers(ctx, d)
		began := time.Now()
		count, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		for _, pod := range c.config.Pods() {
			d.Pods[string(pod.UID)] = c.podDisks(count, pod)
		}
		d.Until = time.Now().Add(max(disksFor, disksShare*time.Since(began)))
		return d, ctx.Err()
	})
}

// askLayers requests from the runtime what only it knows. What the runtime does not report is left
// out.
func (c *Collector) askLayers(ctx context.Context, d *disks) {
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	images, err := c.config.CRI.ImageFS(ctx)
	if err != nil {
		c.config.Log.Debug("the runtime does not tell what images take", "err", err)
	}
	if d.Images = filesystem(images.GetFsId().GetMountpoint()); d.Images != nil {
		d.Images.Used, d.Images.InodesUsed = value(images.GetUsedBytes()), value(images.GetInodesUsed())
	}
	containers, err := c.config.CRI.ContainerStats(ctx, c.config.Labels())
	if err != nil {
		c.config.Log.Debug("the runtime does not tell what containers wrote", "err", err)
	}
	for _, k := range containers {
		if l := k.GetWritableLayer(); l != nil {
			d.Layers[k.GetAttributes().GetId()] = layer{value(l.GetUsedBytes()), value(l.GetInodesUsed())}
		}
	}
}

// plugins are the kinds of a pod's volumes that are counted; volumes of the host do not belong to
// the pod.
var plugins = []string{"kubernetes.io~empty-dir", "kubernetes.io~configmap", "kubernetes.io~secret",
	"kubernetes.io~downward-api", "kubernetes.io~projected"}

func (c *Collector) podDisks(ctx context.Context, pod *v1.Pod) podDisks {
	d := podDisks{Logs: map[string]layer{}}
	if name := string(pod.UID); name == "" || strings.Contains(name, "/") {
		return d
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range list {
			dir := filepath.Join(c.config.PodLogs, pod.Namespace+"_"+pod.Name+"_"+string(pod.UID), list[k].Name)
			if bytes, inodes, err := within(ctx, dir, 2); err == nil {
				d.Logs[list[k].Name] = layer{known(bytes), known(inodes)}
			}
		}
	}
	for _, v := range pod.Spec.Volumes {
		for _, plugin := range plugins {
			dir := filepath.Join(c.config.Root, "pods", string(pod.UID), "volumes", plugin, v.Name)
			if s := part(ctx, dir); s != nil {
				d.Volumes = append(d.Volumes, volumeSpace{v.Name, ownMemory(dir), s})
			}
		}
	}
	return d
}
