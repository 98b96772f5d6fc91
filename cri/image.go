package cri

import (
	"context"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Image returns a local image, or nil without an error when it is absent.
func (c *Client) Image(ctx context.Context, image *rt.ImageSpec) (*rt.Image, error) {
	r, err := call(ctx, "ImageStatus", image.GetImage(), c.Timeouts.Query, c.images.ImageStatus,
		&rt.ImageStatusRequest{Image: image})
	return r.GetImage(), err
}

// PullImage pulls an image and returns the reference to create containers with.
// auth and pod may be nil.
func (c *Client) PullImage(ctx context.Context, image *rt.ImageSpec, auth *rt.AuthConfig, pod *rt.PodSandboxConfig) (ref string, err error) {
	r, err := call(ctx, "PullImage", image.GetImage(), c.Timeouts.Pull, c.images.PullImage,
		&rt.PullImageRequest{Image: image, Auth: auth, SandboxConfig: pod})
	return r.GetImageRef(), err
}
