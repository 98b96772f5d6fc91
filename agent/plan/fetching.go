package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// progressEvery is how often the status of a pod says anew how long a pull takes.
const progressEvery = 10 * time.Second

// Pull is how far a container's images are.
type Pull struct {
	Image  string    // the first that is not there yet
	Queued bool      // it waits for other pulls
	Since  time.Time // when it was begun, or wanted
}

// waitForImage says of a container that its image is on its way. What went
// wrong the last time stays its reason until that has come out well.
func (s *Facts) waitForImage(p *Plan, c *v1.Container, on Pull) {
	w := Waiting{s.PendingReason(), on.text(s.Now)}
	if f := s.Failures[c.Name]; f.Reason != "" {
		w = Waiting{f.Reason, fmt.Sprintf("%s (%s)", f.Message, w.Message)}
	}
	p.Wait(c.Name, w)
	p.wakeAt(s.Now.Add(progressEvery - max(s.Now.Sub(on.Since), 0)%progressEvery))
}

// text says how far the images are. That they wait is said only once they have
// waited, as each pull does for a moment.
func (u Pull) text(now time.Time) string {
	so := now.Sub(u.Since).Truncate(progressEvery)
	switch {
	case so <= 0:
		return fmt.Sprintf("pulling image %q", u.Image)
	case u.Queued:
		return fmt.Sprintf("image %q waits for other pulls, %s so far", u.Image, so)
	}
	return fmt.Sprintf("pulling image %q, %s so far", u.Image, so)
}
