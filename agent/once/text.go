package once

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"monopod/agent/cli/print"

	v1 "k8s.io/api/core/v1"
)

// endWords says how a container ended.
func endWords(t *v1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed" {
		text += " (" + t.Reason + ")"
	}
	if t.Message != "" && t.ExitCode != 0 {
		text += ": " + print.OneLine(t.Message)
	}
	return text
}

var (
	soFar   = regexp.MustCompile(`, \d\S* so far`)
	backOff = regexp.MustCompile(`^back-off (\S+) restarting`)
	trying  = regexp.MustCompile(`\s*\(pulling image [^()]*\)$`)
)

// waits says what a pod waits for: a text by its subject. Normal progress is left
// out.
func waits(v *view, n names) map[string]string {
	out := map[string]string{}
	if v.status == nil {
		return out
	}
	pod := n.pod(v.pod)
	if v.refused() {
		out[pod] = "there is no place for it: " + joinWords(v.status.Reason, strings.TrimPrefix(v.status.Message, refusedPrefix))
		return out
	}
	all := v.containers()
	for k := range all {
		if text := containerWaits(&all[k]); text != "" {
			out[pod+"/"+all[k].Name] = text
		}
	}
	if same, ok := common(out, len(all)); ok {
		return map[string]string{pod: same}
	}
	for _, c := range v.status.Conditions {
		_, text, probed := strings.Cut(c.Message, "]: ")
		switch {
		case c.Status == v1.ConditionTrue:
		case c.Type == v1.ContainersReady && probed:
			out[pod] = "is not ready: " + print.OneLine(text)
		case c.Type == v1.PodReadyToStartContainers && c.Message != "" && len(out) == 0: // a set-up that fails
			out[pod] = joinWords(c.Reason, c.Message)
		}
	}
	return out
}

// unfinished says what keeps the work from its end: what each pod waits for, or which of
// its containers run on.
func unfinished(all []view, ready bool, n names) string {
	var out []string
	for k := range all {
		v := &all[k]
		texts := waits(v, n)
		for _, about := range slices.Sorted(maps.Keys(texts)) {
			out = append(out, about+": "+texts[about])
		}
		for _, s := range v.containers() {
			if s.State.Running != nil && len(texts) == 0 && !ready && isJob(v.pod) && !isSidecar(v.pod, s.Name) {
				out = append(out, n.pod(v.pod)+"/"+s.Name+" still runs")
			}
		}
	}
	return strings.Join(out, "; ")
}

// endMark separates messages about a container's end from those about what it
// waits for.
const endMark = " end"

// ends says which containers ended badly: a text by container and end.
func ends(v *view, n names) map[string]string {
	out := map[string]string{}
	for _, s := range v.containers() {
		if t := lastEnd(&s); t != nil && t.ExitCode != 0 {
			out[n.pod(v.pod)+"/"+s.Name+endMark] = endWords(t)
			if attempt := attemptOf(&s); attempt > 1 {
				out[n.pod(v.pod)+"/"+s.Name+endMark] += fmt.Sprintf(" (attempt %d)", attempt)
			}
		}
	}
	return out
}

// attemptOf returns which attempt ended last, from 1.
func attemptOf(s *v1.ContainerStatus) int32 {
	if s.State.Running != nil {
		return s.RestartCount
	}
	return s.RestartCount + 1
}

// common returns the text that all containers share, which is then the pod's.
func common(texts map[string]string, containers int) (text string, ok bool) {
	for _, t := range texts {
		if text != "" && t != text {
			return "", false
		}
		text = t
	}
	return text, text != "" && len(texts) == containers && containers > 1
}

// containerWaits is "" for a container that is well or on its usual way.
func containerWaits(s *v1.ContainerStatus) string {
	w := s.State.Waiting
	if w == nil {
		return ""
	}
	text := print.OneLine(trying.ReplaceAllString(soFar.ReplaceAllString(w.Message, ""), ""))
	if slices.Contains(final, w.Reason) {
		return "" // that is how the run ends
	}
	switch w.Reason {
	case "", "PodInitializing", "ContainerCreating":
		return text
	case "WaitingForPods":
		return text
	case "CrashLoopBackOff":
		if m := backOff.FindStringSubmatch(text); m != nil {
			return "is started again within " + m[1]
		}
	case "NetworkNotReady":
		return "waits for the network: " + strings.TrimPrefix(text, "network is not ready: ")
	case "ErrImagePull", "ImagePullBackOff":
		// One and the same trouble, whether it is tried just now or waited for.
		if _, why, ok := strings.Cut(text, "ErrImagePull: "); ok {
			text = why
		}
		return fmt.Sprintf("image %q cannot be pulled and is tried again: %s", s.Image, text)
	}
	return joinWords(w.Reason, text)
}

// joinWords joins the non-empty parts by colons.
func joinWords(parts ...string) string {
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, print.OneLine(p))
		}
	}
	return strings.Join(said, ": ")
}
