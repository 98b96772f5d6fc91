package podevents

import (
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/image"
	"monopod/agent/message"
)

// RecordNoImage records why a container has no image.
func (r *Recorder) RecordNoImage(about v1.ObjectReference, i *image.Error) {
	warn := func(reason string, said message.Text) {
		r.Events.RecordTry(about, v1.EventTypeWarning, reason, said, i.Retry)
	}
	why := message.Private(i.Error())
	backOff := func() {
		r.Events.RecordTry(about, v1.EventTypeNormal, "BackOff", message.Of("Back-off pulling image %q", message.Name(i.Image)), i.Retry)
	}
	switch i.Reason {
	case image.ImagePullBackOff:
		backOff()
	case image.ErrNeverPull:
		warn(i.Reason, why)
	case image.ErrInspect, image.InvalidName:
		warn("InspectFailed", why)
	default:
		warn("Failed", message.Of("Failed to pull image %q: %s", message.Name(i.Image), why))
		defer backOff()
	}
	warn("Failed", message.Of("Error: %s", message.Name(i.Reason)))
}

// RecordPull makes a request record the start and the end of its pull.
func (r *Recorder) RecordPull(about v1.ObjectReference, req *image.Request) {
	record := func(reason string, said message.Text) { r.Events.Event(about, v1.EventTypeNormal, reason, said) }
	name := message.Name(req.Image)
	req.Begins = func() { record("Pulling", message.Of("Pulling image %q", name)) }
	req.Done = func(img *rt.Image, took, all time.Duration) {
		record("Pulled", message.Of("Successfully pulled image %q in %s (%s including waiting). Image size: %d bytes.",
			name, message.Duration(took.Truncate(time.Millisecond)), message.Duration(all.Truncate(time.Millisecond)), message.Number(img.GetSize())))
	}
}

// RecordPresent records that an image needs no pull.
func (r *Recorder) RecordPresent(about v1.ObjectReference, image string) {
	r.Events.Record(about, v1.EventTypeNormal, "Pulled",
		message.Of("Container image %q already present on machine and can be accessed by the pod", message.Name(image)))
}
