package client

import (
	"context"
	"fmt"
	"net/url"

	"monopod/agent/status"
)

// RemoveImage has the agent remove an image that nothing needs.
func RemoveImage(ctx context.Context, socket, name string) (*status.RemovedImages, error) {
	var done status.RemovedImages
	return &done, ofImages(ctx, socket, "rm", url.Values{"image": {name}}, &done)
}

// PruneImages has the agent remove all images that nothing needs; dry: it tells which.
func PruneImages(ctx context.Context, socket string, dry bool) (*status.RemovedImages, error) {
	var done status.RemovedImages
	return &done, ofImages(ctx, socket, "prune", url.Values{"dry-run": {fmt.Sprint(dry)}}, &done)
}

// PullImage has the agent pull an image, and waits until it is there.
func PullImage(ctx context.Context, socket, name string) error {
	for {
		var now status.PulledImage
		err := ofImages(ctx, socket, "pull", url.Values{"image": {name}}, &now)
		if err != nil || now.Done {
			return err
		}
	}
}

// ImagesLoaded tells the agent which images the runtime was given.
func ImagesLoaded(ctx context.Context, socket string, names []string) error {
	return ofImages(ctx, socket, "loaded", url.Values{"image": names}, &struct{}{})
}

func ofImages(ctx context.Context, socket, verb string, query url.Values, into any) error {
	path := "/images/" + verb + "?" + query.Encode()
	body, err := post(ctx, sendTimeout, socket, path)
	if err != nil {
		return err
	}
	return Decode(body, into, socket, path)
}
