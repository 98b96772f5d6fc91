package plan

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
)

// progressEvery is how often a pod's status updates how long a pull takes.
const progressEvery = 10 * time.Second

// Pull is the progress of a container's image pulls.
type Pull struct {
	Image  string    // the first that is not present yet
	Queued bool      // it waits for other pulls
	Since  time.Time // when the pull started, or was queued
}

// waitForImage reports that the container's image is being pulled. A failure of
// the last pull stays the reason until a pull succeeds.
func (s *Facts) waitForImage(p *Plan, c *v1.Container, on Pull) {
	w := Waiting{s.PendingReason(), on.text(s.Now)}
	if f := s.Failures[c.Name]; f.Reason != "" {
		w = Waiting{f.Reason, message.Of("%s (%s)", f.Message, w.Message)}
	}
	p.Wait(c.Name, w)
	p.wakeAt(s.Now.Add(progressEvery - max(s.Now.Sub(on.Since), 0)%progressEvery))
}

// text describes the progress. Each pull is queued for a moment, so that is
// said only after a while.
func (u Pull) text(now time.Time) message.Text {
	so := now.Sub(u.Since).Truncate(progressEvery)
	switch {
	case so <= 0:
		return message.Of("pulling image %q", message.Name(u.Image))
	case u.Queued:
		return message.Of("image %q waits for other pulls, %s so far", message.Name(u.Image), message.Duration(so))
	}
	return message.Of("pulling image %q, %s so far", message.Name(u.Image), message.Duration(so))
}
