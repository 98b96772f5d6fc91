package annotations

import (
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Update is the annotation by which a pod says when its former version stops:
// UpdatePrepare, once all is there that this one needs, or UpdateStopFirst, at once. Or it says
// what is kept of that: UpdateInPlace, as much as can be, or UpdateReplace, nothing.
const (
	Update          = "monopod.update"
	UpdatePrepare   = "prepare"
	UpdateStopFirst = "stop-first"
	UpdateInPlace   = "in-place"
	UpdateReplace   = "replace"
)

// The words of the setting updatePolicy mean the same in the annotation.
const (
	updateInPlaceSetting = "InPlace"
	updateReplaceSetting = "Replace"
)

// updateWords are what the annotation may say, for messages.
const updateWords = UpdatePrepare + ", " + UpdateStopFirst + ", " + UpdateInPlace + " or " + UpdateReplace

// UpdateOf returns which of the four words a pod's annotation says, "" if none, and whether that is
// in order or absent.
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

// UpdateHealth is the annotation by which a pod says within what time it must
// be ready after it took the place of its former version, such as 30s; 0s: no matter.
const UpdateHealth = "monopod.update-health"

const (
	updateHealthLeast = time.Second
	updateHealthMost  = 24 * time.Hour
)

// UpdateHealthOf returns that time, whether the pod says it, and whether it is in order or absent.
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

// UpdateLock is the annotation that names a file in a container, in an emptyDir
// volume. While it is there, updates of the pod wait.
const UpdateLock = "monopod.update-lock"

// LockIn returns in which emptyDir volume of a pod a file of its containers is, and
// where in that; ok is false if it is in none.
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
