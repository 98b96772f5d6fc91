package print

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// crashWord returns how often a container in back-off has ended, how it ended last, and when it
// starts again. The status has only the kubelet's text, with the pod's uid.
func crashWord(p *v1.Pod, s *v1.ContainerStatus, now time.Time) Word {
	t, verb, times := s.LastTerminationState.Terminated, "crashed", "1 time"
	if t.ExitCode == 0 {
		verb = "ended"
	}
	if s.RestartCount > 0 {
		times = fmt.Sprintf("%d times", s.RestartCount+1)
	}
	w := lasting(fmt.Sprintf("%s %s (%s)", verb, times, JoinWords(EndedWith(t), LastLine(t.Message))))
	w.Reason, w.Hint = s.State.Waiting.Reason, logsCommand(p, s.Name)
	if next := status.StartsOf(p)[s.Name]; !next.IsZero() {
		w.Text += nextStart(next, now)
	}
	return w
}

// nextStart returns when a container starts again.
func nextStart(at, now time.Time) string {
	left := at.Sub(now)
	if left <= 0 {
		return "; it starts again now"
	}
	return "; next start in " + inWords(left)
}

// logsCommand is the command that prints what a container wrote before it ended.
func logsCommand(p *v1.Pod, container string) string {
	name := ShortName(p)
	if p.Namespace != v1.NamespaceDefault {
		name = p.Namespace + "/" + name
	}
	if len(p.Spec.Containers)+len(p.Spec.InitContainers) > 1 {
		name += " " + container
	}
	return "monopod logs " + name + " -p"
}

// LastLine returns the last line of a text that is not empty.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
