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
	messageLimit = 12288    // of the termination messages of one pod together, in bytes
	logTailLines = 80       // of a log, for FallbackToLogsOnError
	logTailBytes = 2048     // likewise
	logTailRead  = 64 << 10 // enough for that, in the CRI's log format
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
	share := messageLimit / (len(s.Pod.Spec.InitContainers) + len(s.Pod.Spec.Containers))
	t.Message = strings.ToValidUTF8(t.Message[:min(len(t.Message), share)], "")
	return t
}

// exitMessage returns a container's termination message, else the end of its log
// if its termination message policy says so.
func exitMessage(c *v1.Container, n *pleg.Container) string {
	text := ""
	if n.TerminationLog != "" {
		text = volume.TerminationMessage(n.TerminationLog)
	}
	fallback := c.TerminationMessagePolicy == v1.TerminationMessageFallbackToLogsOnError && n.ExitCode != 0 && n.Reason != "ContainerCannotRun"
	if text == "" && fallback {
		return LogTail(n.Status.GetLogPath())
	}
	return text
}

// LogTail returns the text at the end of a log in the CRI's format; "" if there
// is none.
func LogTail(path string) string {
	b, err := safefile.Tail(path, podlog.LogDepth, logTailRead) // may start within a line, which is too old to matter
	if err != nil {
		return ""
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	if k := len(lines); k > 0 && len(lines[k-1]) == 0 {
		lines = lines[:k-1]
	}
	var text []byte
	for _, l := range lines[max(0, len(lines)-logTailLines):] {
		text = append(text, textOf(l)...)
	}
	return string(text[max(0, len(text)-logTailBytes):])
}

// textOf returns the text of a log line "<time> stdout|stderr F|P <text>", with
// its newline unless it is only the first part of a line (P).
func textOf(line []byte) []byte {
	parts := bytes.SplitN(line, []byte(" "), 4)
	if len(parts) < 4 {
		return nil
	}
	if bytes.HasPrefix(parts[2], []byte("P")) {
		return bytes.TrimSuffix(parts[3], []byte("\n"))
	}
	return parts[3]
}
