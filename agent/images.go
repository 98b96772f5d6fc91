package agent

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"monopod/agent/image"
	"monopod/agent/server"
	"monopod/agent/status"
	"monopod/manifests"
)

// imageRequests are the owner's requests about images.
func (a *Agent) imageRequests() []server.Request {
	return []server.Request{
		server.OfImages("rm", a.removeImage),
		server.OfImages("prune", a.pruneImages),
		server.OfImages("pull", a.pullImage),
		server.OfImages("loaded", a.imagesLoaded),
	}
}

// removeImage removes one image that nothing needs.
func (a *Agent) removeImage(ctx context.Context, q url.Values) (any, error) {
	e, err := a.images.RemoveNamed(ctx, q.Get("image"))
	if err != nil {
		return nil, refusal(err)
	}
	return removed([]*image.Entry{e}), nil
}

// pruneAnswer is how long one request removes images; the next one continues.
const pruneAnswer = 10 * time.Second

// pruneImages removes images that nothing needs.
func (a *Agent) pruneImages(ctx context.Context, q url.Values) (any, error) {
	former, err := a.formerImages(ctx)
	if err != nil {
		return nil, err
	}
	dry, _ := strconv.ParseBool(q.Get("dry-run"))
	done, err := a.images.Prune(ctx, former, dry, pruneAnswer)
	if err != nil {
		return nil, err
	}
	all := removed(done.Removed)
	all.More = done.More
	for _, err := range done.Failed {
		all.Failed = append(all.Failed, err.Error())
	}
	return all, nil
}

// formerImages returns the images of all versions that a pod may be rolled back to.
func (a *Agent) formerImages(ctx context.Context) (names []string, err error) {
	for name := range a.sync.names() {
		namespace, pod, _ := strings.Cut(name, "/")
		h, err := a.sync.History(ctx, manifests.Key{Namespace: namespace, Name: pod})
		if errors.As(err, new(*status.Refusal)) {
			continue // it has none
		}
		if err != nil {
			return nil, err
		}
		for _, v := range h.Versions {
			names = append(names, v.Images...)
			for _, id := range v.Digests {
				names = append(names, id)
			}
		}
	}
	return names, nil
}

// refusal returns an error of package image for the server.
func refusal(err error) error {
	var r *image.Refused
	if errors.As(err, &r) {
		return &status.Refusal{Unknown: r.Unknown, Why: r.Why}
	}
	return err
}

func removed(all []*image.Entry) status.RemovedImages {
	out := status.RemovedImages{Images: []status.RemovedImage{}}
	for _, e := range all {
		out.Images = append(out.Images, status.RemovedImage{Name: e.Name(), Size: e.Size})
	}
	return out
}

// pullAnswer is how long one request waits for a pull; it goes on after that.
const pullAnswer = 10 * time.Second

// pullImage pulls an image with the credentials of the node.
func (a *Agent) pullImage(ctx context.Context, q url.Values) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, pullAnswer)
	defer cancel()
	done, err := a.orders.Pull(ctx, q.Get("image"))
	var e *image.Error
	if errors.As(err, &e) {
		return nil, &status.Refusal{Why: e.Words()}
	}
	if done && err == nil {
		err = a.imagesCame(ctx, []string{image.Canonical(q.Get("image"))})
	}
	return status.PulledImage{Done: done}, err
}

// imagesLoaded has pods start at once whose images the owner has given the runtime.
func (a *Agent) imagesLoaded(ctx context.Context, q url.Values) (any, error) {
	return struct{}{}, a.imagesCame(ctx, q["image"])
}

// imagesCame has pods use images at once that the runtime has got, by their full names.
func (a *Agent) imagesCame(ctx context.Context, names []string) error {
	a.workers.Images.Came(names)
	select {
	case a.sync.came <- names:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
