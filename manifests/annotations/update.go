package annotations

import (
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Update is the annotation that sets when the pod's former version stops: UpdatePrepare, once
// everything that the new version needs is there, or UpdateStopFirst, at once. Or it sets how much
// of the former version is kept: UpdateInPlace, as much as possible, or UpdateReplace, nothing.
const (
	Update          = "monopod.update"
	UpdatePrepare   = "prepare"
	UpdateStopFirst = "stop-first"
	UpdateInPlace   = "in-place"
	UpdateReplace   = "replace"
)

// The values of the setting updatePolicy; the annotation takes them, too.
const (
	updateInPlaceSetting = "InPlace"
	updateReplaceSetting = "Replace"
)

// updateWords lists the values of the annotation, for messages.
const updateWords = UpdatePrepare + ", " + UpdateStopFirst + ", " + UpdateInPlace + " or " + UpdateReplace

// UpdateOf returns the value of a pod's annotation, "" if there is none, and whether it is valid or
// absent.
func UpdateOf(pod *v1.Pod) (word string, good bool) {
	switch text, said := pod.Annotations[Update]; text {
	case UpdatePrepare, UpdateStopFirst, UpdateInPlace, UpdateReplace:
		return text, true
	case updateInPlaceSetting:
		return UpdateInPlace, true
	case updateReplaceSetting:
		return UpdateReplace, true
	default:
		return "", !said
	}
}

// UpdateHealth is the annotation that sets within what time the pod must be ready after it has
// replaced its former version, such as 30s; 0s: it need not be.
const UpdateHealth = "monopod.update-health"

const (
	updateHealthLeast = time.Second
	updateHealthMost  = 24 * time.Hour
)

// UpdateHealthOf returns that time, whether the pod sets it, and whether it is valid or absent.
func UpdateHealthOf(pod *v1.Pod) (within time.Duration, said, good bool) {
	text, said := pod.Annotations[UpdateHealth]
	if !said {
		return 0, false, true
	}
	d, err := time.ParseDuration(text)
	if err != nil || d != 0 && (d < updateHealthLeast || d > updateHealthMost) {
		return 0, false, false
	}
	return d, true, true
}

// UpdateLock is the annotation that names a file in a container, in an emptyDir volume. While the
// file exists, updates of the pod wait.
const UpdateLock = "monopod.update-lock"

// LockIn returns the emptyDir volume of a pod that holds a file of its containers, and the path
// below it; ok is false if no such volume does.
func LockIn(p *v1.Pod, file string) (volume, below string, ok bool) {
	if !path.IsAbs(file) || path.Clean(file) != file {
		return "", "", false
	}
	longest := -1
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			at := path.Clean("/" + m.MountPath)
			rest, in := strings.CutPrefix(file, strings.TrimSuffix(at, "/")+"/")
			if !in || len(at) <= longest {
				continue
			}
			longest, volume, below = len(at), m.Name, path.Join(m.SubPath, rest)
			ok = m.SubPathExpr == "" && slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.Name == m.Name && v.EmptyDir != nil })
		}
	}
	return volume, below, ok
}
