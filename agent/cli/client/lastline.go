package client

import (
	"context"
	"net/url"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/clip"
	"monopod/agent/print"
)

const (
	lastLineTimeout = time.Second     // for the end of one log
	lastLinesLimit  = 3 * time.Second // for those of all pods together
	lastLineTail    = "5"             // lines of a log; the last of them may be empty
	lastLineBytes   = 160             // of what is shown
)

// WithLastLines returns the pods, in which each container that ended badly and left no termination
// message has the last line of its log as one. It is for people to read, and no status. What
// cannot be read in time is left out. The given pods are not changed.
func WithLastLines(ctx context.Context, socket string, pods []v1.Pod) []v1.Pod {
	ctx, cancel := context.WithTimeout(ctx, lastLinesLimit)
	defer cancel()
	all := slices.Clone(pods)
	for i := range all {
		all[i].Status = *all[i].Status.DeepCopy()
		for _, list := range [][]v1.ContainerStatus{all[i].Status.InitContainerStatuses, all[i].Status.ContainerStatuses} {
			for k := range list {
				previous, ended := silentEnd(&list[k])
				if ended != nil {
					ended.Message = endOfLog(ctx, socket, &all[i], list[k].Name, previous)
				}
			}
		}
	}
	return all
}

// silentEnd returns how a container ended that is shown as ended badly, if the reason is not
// known; nil for any other. previous: the log of that attempt is the previous one.
func silentEnd(s *v1.ContainerStatus) (previous bool, ended *v1.ContainerStateTerminated) {
	ended = s.State.Terminated
	if s.State.Waiting != nil {
		previous, ended = true, s.LastTerminationState.Terminated
	}
	if ended == nil || ended.ExitCode == 0 || ended.Message != "" || ended.Reason != "Error" {
		return false, nil
	}
	return previous, ended
}

// endOfLog returns the last line that a container wrote, "" if it is not known.
func endOfLog(ctx context.Context, socket string, p *v1.Pod, container string, previous bool) string {
	q := url.Values{"tailLines": {lastLineTail}}
	if previous {
		q.Set("previous", "true")
	}
	path := "/containerLogs/" + p.Namespace + "/" + p.Name + "/" + container + "?" + q.Encode()
	text, err := GetWithin(ctx, lastLineTimeout, socket, path)
	if err != nil {
		return ""
	}
	line := print.LastLine(string(text))
	if head := clip.Head(line, lastLineBytes); head != line {
		return head + "…"
	}
	return line
}
