package cri

import (
	"context"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStats returns the usage of the running containers that have all of labels.
func (c *Client) ContainerStats(ctx context.Context, labels map[string]string) ([]*rt.ContainerStats, error) {
	r, err := call(ctx, "ListContainerStats", "", c.asks("ListContainerStats"), c.runtime.ListContainerStats,
		&rt.ListContainerStatsRequest{Filter: &rt.ContainerStatsFilter{LabelSelector: labels}})
	return r.GetStats(), err
}

// SandboxStats returns the usage of the ready sandboxes that have all of labels. Older runtimes do
// not have the call (see Unimplemented).
func (c *Client) SandboxStats(ctx context.Context, labels map[string]string) ([]*rt.PodSandboxStats, error) {
	r, err := call(ctx, "ListPodSandboxStats", "", c.asks("ListPodSandboxStats"), c.runtime.ListPodSandboxStats,
		&rt.ListPodSandboxStatsRequest{Filter: &rt.PodSandboxStatsFilter{LabelSelector: labels}})
	return r.GetStats(), err
}

// ImageFS returns the file system that holds the images and how much of it they use, nil if the
// runtime does not report it.
func (c *Client) ImageFS(ctx context.Context) (*rt.FilesystemUsage, error) {
	r, err := call(ctx, "ImageFsInfo", "", c.asks("ImageFsInfo"), c.images.ImageFsInfo, &rt.ImageFsInfoRequest{})
	for _, fs := range r.GetImageFilesystems() {
		return fs, err
	}
	return nil, err
}
