package podlog

import (
	"errors"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
)

var (
	// ErrNotStarted: the container has no log because it has not run.
	ErrNotStarted = errors.New("not started yet")
	// ErrNoPrevious: no previous attempt has a log.
	ErrNoPrevious = errors.New("no previous attempt")
)

// Dir returns the folder of a container's logs, as the kubelet names it.
func Dir(podLogs string, p *v1.Pod, container string) string {
	return filepath.Join(podLogs, p.Namespace+"_"+p.Name+"_"+string(p.UID), container)
}

// StatusOf returns a container's status in a pod's status; nil: none.
func StatusOf(p *v1.Pod, container string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		if k := slices.IndexFunc(list, func(c v1.ContainerStatus) bool { return c.Name == container }); k >= 0 {
			return &list[k]
		}
	}
	return nil
}

// AttemptOf returns the attempt whose log is meant by the log of a container, or by the log of the
// previous attempt: of a running container, what it writes; of one that waits for its restart,
// what it wrote last, for both, as with the kubelet. It returns ErrNotStarted or ErrNoPrevious if
// there is none.
func AttemptOf(dir string, c *v1.ContainerStatus, previous bool) (int, error) {
	there, _ := Attempts(dir)
	newest := func(most int) int {
		for k := len(there) - 1; k >= 0; k-- {
			if there[k] <= most {
				return there[k]
			}
		}
		return -1
	}
	switch {
	case c == nil && len(there) > 0 && !previous:
		return there[len(there)-1], nil
	case c == nil && !previous:
		return 0, ErrNotStarted
	case c == nil:
		return 0, ErrNoPrevious
	}
	attempt := int(c.RestartCount)
	if previous {
		switch last := c.LastTerminationState.Terminated; {
		case last == nil:
			attempt = -1
		case last.ContainerID != c.ContainerID:
			attempt--
		}
		if attempt = newest(attempt); attempt < 0 {
			return 0, ErrNoPrevious
		}
		return attempt, nil
	}
	if c.State.Running != nil {
		return attempt, nil
	}
	if attempt = newest(attempt); attempt < 0 {
		return 0, ErrNotStarted
	}
	return attempt, nil
}

// Over reports whether an attempt of a container writes no more, by its status.
func Over(c *v1.ContainerStatus, attempt int) bool {
	switch last := c.LastTerminationState.Terminated; {
	case int(c.RestartCount) > attempt, c.State.Terminated != nil:
		return true
	case c.State.Running != nil:
		return false
	default: // it waits for its restart, or for a hook that runs meanwhile
		return last != nil && last.ContainerID == c.ContainerID
	}
}

// Waits returns in the kubelet's words what a container without a log waits for.
func Waits(c *v1.ContainerStatus) string {
	if c == nil || c.State.Waiting == nil || c.State.Waiting.Reason == "" {
		return "ContainerCreating"
	}
	switch reason := c.State.Waiting.Reason; reason {
	case "ErrImagePull":
		return "image can't be pulled"
	case "ImagePullBackOff":
		return "trying and failing to pull image"
	default:
		return reason
	}
}
