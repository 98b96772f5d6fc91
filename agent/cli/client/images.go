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

// PruneImages has the agent remove all images that nothing needs, in as many requests as that takes;
// dry: it tells which. Beside an error it returns what was removed until then.
func PruneImages(ctx context.Context, socket string, dry bool) (*status.RemovedImages, error) {
	all := &status.RemovedImages{}
	for {
		var now status.RemovedImages
		err := ofImages(ctx, socket, "prune", url.Values{"dry-run": {fmt.Sprint(dry)}}, &now)
		if err != nil {
			return all, err
		}
		all.Images, all.Failed, all.More = append(all.Images, now.Images...), now.Failed, now.More
		if !now.More || len(now.Images) == 0 { // or the runtime removes none
			return all, nil
		}
	}
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
