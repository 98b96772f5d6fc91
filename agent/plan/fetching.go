package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
)

// progressEvery is the time between two updates of a pull's duration in a pod's status.
const progressEvery = 10 * time.Second

// Pull is the progress of a container's image pulls.
type Pull struct {
	Image   string    // the first image that is not present yet
	Queued  bool      // it waits for other pulls
	Archive string    // which is going to give it; "": it is pulled
	Since   time.Time // when the pull started, or was queued
}

// waitForImage reports that the container's image is being pulled. The failure of the last pull
// stays the reason until a pull succeeds.
func (s *Facts) waitForImage(p *Plan, c *v1.Container, on Pull) {
	w := Waiting{s.PendingReason(), on.text(s.Now)}
	if f := s.Failures[c.Name]; f.Reason != "" {
		w = Waiting{f.Reason, message.Of("%s (%s)", f.Message, w.Message)}
	}
	p.Wait(c.Name, w)
	p.wakeAt(s.Now.Add(progressEvery - max(s.Now.Sub(on.Since), 0)%progressEvery))
}

// Words returns what is pulled, or waits for other pulls. Each pull is queued for a moment, so the
// queue is mentioned only after a while.
func (u Pull) Words(now time.Time) string {
	if u.Archive != "" {
		return fmt.Sprintf("image %q is in archive %s, which is being imported", u.Image, u.Archive)
	}
	if u.Queued && now.Sub(u.Since) >= progressEvery {
		return fmt.Sprintf("image %q waits for other pulls", u.Image)
	}
	return fmt.Sprintf("pulling image %q", u.Image)
}

// text is Words with the duration.
func (u Pull) text(now time.Time) message.Text {
	words, so := message.Name(u.Words(now)), now.Sub(u.Since).Truncate(progressEvery)
	if so <= 0 {
		return words.Text()
	}
	return message.Of("%s, %s so far", words, message.Duration(so))
}
