package podstatus

import (
	"bytes"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podlog"
	"monopod/agent/safefile"
	"monopod/agent/volume"
)

const (
	messageLimit = 12288    // what the termination messages of one pod may hold together, in bytes
	logTailLines = 80       // what FallbackToLogsOnError shows of a log at most
	logTailBytes = 2048     // likewise
	logTailRead  = 64 << 10 // enough for that, in the form in which logs are written
)

// Terminated describes an attempt that has ended.
func Terminated(s *plan.Facts, c *v1.Container, n *pleg.Container) *v1.ContainerStateTerminated {
	t := &v1.ContainerStateTerminated{
		ExitCode: n.ExitCode, Reason: n.Reason, ContainerID: containerID(s, n),
		StartedAt: Seconds(n.Started), FinishedAt: Seconds(n.Finished),
	}
	text := lastWords(c, n)
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
	share := messageLimit / (len(s.Pod.Spec.InitContainers) + len(s.Pod.Spec.Containers))
	t.Message = strings.ToValidUTF8(t.Message[:min(len(t.Message), share)], "")
	return t
}

// lastWords returns what a container left for whoever wants to know why it
// ended: its termination message, else the end of its log if it asks for that.
func lastWords(c *v1.Container, n *pleg.Container) string {
	text := ""
	if n.TerminationLog != "" {
		text = volume.TerminationMessage(n.TerminationLog)
	}
	falls := c.TerminationMessagePolicy == v1.TerminationMessageFallbackToLogsOnError && n.ExitCode != 0 && n.Reason != "ContainerCannotRun"
	if text == "" && falls {
		return LogTail(n.Status.GetLogPath())
	}
	return text
}

// LogTail returns the end of a log in the CRI's form; "" where there is none.
func LogTail(path string) string {
	b, err := safefile.Tail(path, podlog.LogDepth, logTailRead) // may begin within a line: that is too long ago to matter
	if err != nil {
		return ""
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	if k := len(lines); k > 0 && len(lines[k-1]) == 0 {
		lines = lines[:k-1]
	}
	var text []byte
	for _, l := range lines[max(0, len(lines)-logTailLines):] {
		text = append(text, said(l)...)
	}
	return string(text[max(0, len(text)-logTailBytes):])
}

// said returns what a line of a log says, with its newline unless it is only
// the first part of a line: "<time> stdout|stderr F|P <text>".
func said(line []byte) []byte {
	parts := bytes.SplitN(line, []byte(" "), 4)
	if len(parts) < 4 {
		return nil
	}
	if bytes.HasPrefix(parts[2], []byte("P")) {
		return bytes.TrimSuffix(parts[3], []byte("\n"))
	}
	return parts[3]
}
