package podevents

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/image"
)

// RecordNoImage records why a container has no image.
func (r *Recorder) RecordNoImage(about v1.ObjectReference, i *image.Error) {
	warn := func(reason, message string) { r.Events.Record(about, v1.EventTypeWarning, reason, message) }
	backOff := func() {
		r.Events.Record(about, v1.EventTypeNormal, "BackOff", fmt.Sprintf("Back-off pulling image %q", i.Image))
	}
	switch i.Reason {
	case image.ImagePullBackOff:
		backOff()
	case image.ErrNeverPull:
		warn(i.Reason, i.Error())
	case image.ErrInspect, image.InvalidName:
		warn("InspectFailed", i.Error())
	default:
		warn("Failed", fmt.Sprintf("Failed to pull image %q: %s", i.Image, i))
		defer backOff()
	}
	warn("Failed", "Error: "+i.Reason)
}

// RecordPull makes a request record the start and the end of its pull.
func (r *Recorder) RecordPull(about v1.ObjectReference, req *image.Request) {
	record := func(reason, message string) { r.Events.Event(about, v1.EventTypeNormal, reason, message) }
	name := req.Image
	req.Begins = func() { record("Pulling", fmt.Sprintf("Pulling image %q", name)) }
	req.Done = func(img *rt.Image, took, all time.Duration) {
		record("Pulled", fmt.Sprintf("Successfully pulled image %q in %s (%s including waiting). Image size: %d bytes.",
			name, took.Truncate(time.Millisecond), all.Truncate(time.Millisecond), img.GetSize()))
	}
}

// RecordPresent records that an image needs no pull.
func (r *Recorder) RecordPresent(about v1.ObjectReference, image string) {
	r.Events.Record(about, v1.EventTypeNormal, "Pulled",
		fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", image))
}
