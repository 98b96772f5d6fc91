package podstatus

import (
	"cmp"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podlog"
	"monopod/agent/volume"
)

const (
	messageLimit = 12288 // of the termination messages of one pod together, in bytes
	logTailLines = 80    // of a log, for FallbackToLogsOnError
	logTailBytes = 2048  // of a log, for FallbackToLogsOnError
)

// Terminated describes an attempt that has ended.
func Terminated(s *plan.Facts, c *v1.Container, n *pleg.Container) *v1.ContainerStateTerminated {
	t := &v1.ContainerStateTerminated{
		ExitCode: n.ExitCode, Reason: n.Reason, ContainerID: containerID(s, n),
		StartedAt: Seconds(n.Started), FinishedAt: Seconds(n.Finished),
	}
	text := exitMessage(c, n)
	switch {
	case n.Message == "":
		t.Message = text
	case text == "":
		t.Message = n.Message
	default:
		t.Message = n.Message + ": " + text
	}
	if t.Message == "" && n.Kill != nil {
		t.Message = n.Kill.Text
	}
	if t.Message == "" && n.OOM != nil {
		t.Message = n.OOM.Words(string(s.Pod.UID), n.ID)
	}
	share := messageLimit / (len(s.Pod.Spec.InitContainers) + len(s.Pod.Spec.Containers))
	t.Message = strings.ToValidUTF8(t.Message[:min(len(t.Message), share)], "")
	return t
}

// exitMessage returns a container's termination message, or the end of its log if its termination
// message policy requires that.
func exitMessage(c *v1.Container, n *pleg.Container) string {
	text := ""
	if n.TerminationLog != "" {
		text = volume.TerminationMessage(n.TerminationLog)
	}
	fallback := c.TerminationMessagePolicy == v1.TerminationMessageFallbackToLogsOnError && n.ExitCode != 0 && n.Reason != "ContainerCannotRun"
	if text == "" && fallback {
		return podlog.Last(n.Status.GetLogPath(), logTailLines, logTailBytes)
	}
	return text
}

// keepOOM keeps what the last status says of the same end, if that was for want of memory and the
// runtime never learned it: the record of the kill was read by an agent that has ended since.
func keepOOM(t *v1.ContainerStateTerminated, last *v1.ContainerStatus) {
	if t == nil || last == nil || t.Reason != "Error" {
		return
	}
	for _, former := range []*v1.ContainerStateTerminated{last.State.Terminated, last.LastTerminationState.Terminated} {
		if former != nil && former.ContainerID == t.ContainerID && former.Reason == "OOMKilled" && former.ExitCode == t.ExitCode {
			t.Reason, t.Message = former.Reason, cmp.Or(t.Message, former.Message)
		}
	}
}
