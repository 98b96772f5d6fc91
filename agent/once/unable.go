package once

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/runtimewords"
	"monopod/agent/status"
	"monopod/manifests/defaults"
)

// final are reasons to wait that no waiting ends: only other manifests would.
var final = []string{"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}

// createError is the reason of a container that the runtime does not make.
const createError = "CreateContainerError"

// unschedulable finds a pod that can never run as it is.
func (j *evaluator) unschedulable(all []view) *outcome {
	for k := range all {
		v := &all[k]
		never := func(subject, text string) *outcome {
			return &outcome{End: endError, Code: codeFailed, Shaky: true, Text: subject + ": " + text}
		}
		pod := j.names.pod(v.pod)
		if v.refused() && !mayFit(v, all) {
			return never("pod "+pod+" cannot run on this node", joinWords(v.status.Reason, strings.TrimPrefix(v.status.Message, status.RefusedPrefix)))
		}
		if text := v.noSandbox(); text != "" {
			return never("pod "+pod+" cannot start", text)
		}
		for _, s := range v.containers() {
			w := s.State.Waiting
			if w == nil {
				continue
			}
			o := never(pod+"/"+s.Name+" cannot start", joinWords(w.Reason, w.Message))
			cause, permanent := unable(w)
			if code := cause.ExitCode(); code != 0 {
				permanent, o.End, o.Code = !mayComeToBe(v.pod, s.Name), endFailed, code
			}
			if permanent {
				return o
			}
			if text := j.uncreatable(v, &s); text != "" {
				return &outcome{End: endError, Code: codeFailed, Text: pod + "/" + s.Name + " " + text}
			}
		}
	}
	return nil
}

// noSandbox returns why the pod can never have a sandbox, "" if it may.
func (v *view) noSandbox() string {
	if v.status == nil {
		return ""
	}
	for _, c := range v.status.Conditions {
		if c.Type == v1.PodReadyToStartContainers && c.Reason == "FailedCreatePodSandBox" && runtimewords.Of(runtimewords.Create, c.Message) == runtimewords.MemoryTooLow {
			return joinWords(c.Reason, c.Message)
		}
	}
	return ""
}

// unable reports whether a container waits for a reason that no waiting ends. cause is the
// runtime's reason, if that counts.
func unable(w *v1.ContainerStateWaiting) (cause runtimewords.Cause, permanent bool) {
	call := runtimewords.Create
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError":
		call = runtimewords.Image
	case createError:
	default:
		return runtimewords.Unknown, slices.Contains(final, w.Reason)
	}
	cause = runtimewords.Of(call, w.Message)
	if w.Reason == "ImageInspectError" && cause != runtimewords.ShortName {
		return runtimewords.Unknown, false // no registry was contacted
	}
	return cause, cause != runtimewords.Unknown
}

// mayComeToBe reports whether another container may put a command that a container lacks into one
// of its volumes. One that is not restarted does not wait for that, just as if the runtime starts
// it and it fails.
func mayComeToBe(pod *v1.Pod, name string) bool {
	all := containers(pod)
	k := slices.IndexFunc(all, func(c v1.Container) bool { return c.Name == name })
	return k >= 0 && len(all[k].VolumeMounts) > 0 && defaults.RestartPolicyOf(pod, &all[k]) != v1.RestartPolicyNever
}
