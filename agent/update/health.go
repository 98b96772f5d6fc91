package update

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"monopod/agent/podspec"
	"monopod/manifests/annotations"
	"monopod/manifests/poduid"
)

// ReasonRolledBack is the reason of the event about a version that did not become or stay ready,
// and that the former version replaces.
const ReasonRolledBack = "UpdateRolledBack"

// Limits is what a version that replaced a running one must meet.
type Limits struct {
	Within time.Duration // within which it must be ready after its start; 0: no trial
	Stable time.Duration // for which it must then stay ready
}

// LimitsOf returns the limits of a version: from its annotations, or otherwise the settings.
func LimitsOf(p *v1.Pod, within, stable time.Duration) Limits {
	if own, said, _ := annotations.UpdateHealthOf(p); said {
		within = own
	}
	return Limits{within, stable}
}

// Health is the observed state of a running version.
type Health struct {
	Seen              bool // nothing of former versions is left
	Waits             bool // it lacks something that is not its fault: images that are being pulled, the network for pods, room on the disk
	Excused           bool // a container of it is stopped, or restarts, for a reason outside it
	Ready             bool // or, of a pod that runs to completion, all containers run or have succeeded
	Succeeded, Failed bool // it has ended
	Restarts          int32
}

// HealthOf returns the health of a pod derived from its status; nil: it has none yet. ready: the
// pod is ready.
func HealthOf(p *v1.Pod, st *v1.PodStatus, ready bool) Health {
	if st == nil {
		return Health{Seen: true}
	}
	h := Health{Seen: true, Ready: ready, Succeeded: st.Phase == v1.PodSucceeded, Failed: st.Phase == v1.PodFailed}
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		h.Restarts += c.RestartCount
	}
	if p.Spec.RestartPolicy != v1.RestartPolicyAlways && st.Phase == v1.PodRunning {
		h.Ready = ready || !slices.ContainsFunc(st.ContainerStatuses, func(c v1.ContainerStatus) bool { return !c.Ready && !succeeded(c) })
	}
	return h
}

func succeeded(c v1.ContainerStatus) bool {
	return c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
}

// Trouble returns a text about the containers of a pod that have ended or are not ready; "": none.
// before are the ids of containers that ended before, by name, which do not count.
func Trouble(st *v1.PodStatus, before map[string]string) string {
	var all []string
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if text := trouble(c, before[c.Name]); text != "" {
			all = append(all, fmt.Sprintf("container %s %s", c.Name, text))
		}
	}
	if len(all) == 0 {
		return st.Message
	}
	return strings.Join(all, ", ")
}

// Troubled returns the names of these containers.
func Troubled(st *v1.PodStatus, before map[string]string) (names []string) {
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if trouble(c, before[c.Name]) != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

func trouble(c v1.ContainerStatus, before string) string {
	end := ended(c)
	if end != nil && before != "" && end.ContainerID == before {
		end = nil
	}
	switch {
	case end != nil && (end.ExitCode != 0 || c.RestartCount > 0):
		return fmt.Sprintf("ended with exit code %d", end.ExitCode)
	case c.Ready || end != nil:
		return ""
	case c.State.Waiting != nil:
		return "waits: " + c.State.Waiting.Reason
	}
	return "is not ready"
}

func ended(c v1.ContainerStatus) *v1.ContainerStateTerminated {
	if c.State.Terminated != nil {
		return c.State.Terminated
	}
	return c.LastTerminationState.Terminated
}

// Ended returns the ids of the containers that ended last, by name.
func Ended(st *v1.PodStatus) map[string]string {
	ids := map[string]string{}
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if end := ended(c); end != nil && end.ContainerID != "" {
			ids[c.Name] = end.ContainerID
		}
	}
	return ids
}

// Running returns the runtime's ids of the containers that run.
func Running(st *v1.PodStatus) (ids []string) {
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if _, id, is := strings.Cut(c.ContainerID, "://"); is && c.State.Running != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// HasWorked reports, from its status, whether a version works or worked: it is ready, and no
// container restarted within the last stable; or it ran for at least stable before it lost its
// readiness, and its containers are not in a crash loop.
func HasWorked(st *v1.PodStatus, now time.Time, stable time.Duration) bool {
	ready := slices.IndexFunc(st.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady })
	switch {
	case st.Phase == v1.PodSucceeded:
		return true
	case ready < 0 || st.Phase == v1.PodFailed:
		return false
	case st.Conditions[ready].Status == v1.ConditionTrue:
		return !slices.ContainsFunc(st.ContainerStatuses, func(c v1.ContainerStatus) bool {
			return c.RestartCount > 0 && c.State.Running != nil && now.Sub(c.State.Running.StartedAt.Time) < stable
		})
	case slices.ContainsFunc(slices.Concat(st.InitContainerStatuses, st.ContainerStatuses), crashes):
		return false
	}
	return st.StartTime != nil && st.Conditions[ready].LastTransitionTime.Sub(st.StartTime.Time) >= stable
}

// crashes reports whether a container is in the crash-loop back-off.
func crashes(c v1.ContainerStatus) bool {
	return c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
}

// ofVolume returns the key of a volume's image among those of containers, whose names have no
// slash.
func ofVolume(name string) string { return "volume/" + name }

// Pin returns the pod with the images that it ran, as ImagesOf has them, and whether those of its
// containers are known. These images need no registry. An image of a volume keeps its name if the
// runtime did not report it, and so do the images of the containers and volumes in unchanged.
func Pin(p *v1.Pod, images map[string]string, unchanged []string) (*v1.Pod, bool) {
	out := p.DeepCopy()
	annotations.MarkRestored(out)
	pin := func(c *v1.Container) bool {
		ref := images[c.Name]
		if ref != "" && !slices.Contains(unchanged, c.Name) {
			c.Image, c.ImagePullPolicy = ref, v1.PullIfNotPresent
		}
		return ref != ""
	}
	for k := range out.Spec.InitContainers {
		pin(&out.Spec.InitContainers[k])
	}
	for k := range out.Spec.Volumes {
		v := &out.Spec.Volumes[k]
		if ref := images[ofVolume(v.Name)]; v.Image != nil && ref != "" && !slices.Contains(unchanged, ofVolume(v.Name)) {
			v.Image.Reference, v.Image.PullPolicy = ref, v1.PullIfNotPresent
		}
	}
	all := true
	for k := range out.Spec.Containers {
		all = pin(&out.Spec.Containers[k]) && all
	}
	return out, all
}

// IsPinned reports whether p is what Pin makes of another version and the images that it ran.
func IsPinned(p, of *v1.Pod, images map[string]string) bool {
	if poduid.HashOf(p) != poduid.HashOf(of) {
		return false
	}
	pinned, all := Pin(of, images, Unchanged(of, p))
	return all && equality.Semantic.DeepEqual(pinned.Spec, p.Spec) && !equality.Semantic.DeepEqual(of.Spec, p.Spec)
}

// Unchanged returns the containers that are the same in two versions of a pod, and the volumes, as
// "volume/" and the name. If they follow a tag, it means the same image in both.
func Unchanged(a, b *v1.Pod) (names []string) {
	a, b = meaning(a), meaning(b)
	for _, x := range slices.Concat(a.Spec.InitContainers, a.Spec.Containers) {
		if slices.ContainsFunc(slices.Concat(b.Spec.InitContainers, b.Spec.Containers), func(y v1.Container) bool { return equality.Semantic.DeepEqual(x, y) }) {
			names = append(names, x.Name)
		}
	}
	for _, x := range a.Spec.Volumes {
		if slices.ContainsFunc(b.Spec.Volumes, func(y v1.Volume) bool { return equality.Semantic.DeepEqual(x, y) }) {
			names = append(names, ofVolume(x.Name))
		}
	}
	return names
}

// meaning returns a pod whose followed tags are replaced by the images that they mean.
func meaning(p *v1.Pod) *v1.Pod {
	refs := annotations.TagImagesOf(p)
	if len(refs) == 0 {
		return p
	}
	out := p.DeepCopy()
	for name, ref := range refs {
		rename(out, name, ref)
	}
	return out
}

// ImagesOf returns the images that containers run or ran, by digest or id, and those of the
// volumes that they mount.
func ImagesOf(st *v1.PodStatus) map[string]string {
	images := map[string]string{}
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if c.ImageID != "" {
			images[c.Name] = c.ImageID
		}
		for _, m := range c.VolumeMounts {
			if m.VolumeStatus != nil && m.VolumeStatus.Image != nil && m.VolumeStatus.Image.ImageRef != "" {
				images[ofVolume(m.Name)] = m.VolumeStatus.Image.ImageRef
			}
		}
	}
	return images
}

// RanByName returns the images that a pod runs or ran, as ImagesOf has them, by the names that its
// manifest gives. Of two images under one name it is the one that has run for longer.
func RanByName(p *v1.Pod, st *v1.PodStatus) map[string]string {
	ran, out := ImagesOf(st), map[string]string{}
	add := func(name, ref string) {
		if name != "" && ref != "" && out[name] == "" {
			out[name] = ref
		}
	}
	all := slices.Clone(st.ContainerStatuses)
	slices.SortStableFunc(all, func(a, b v1.ContainerStatus) int { return startOf(a).Compare(startOf(b)) })
	for _, c := range append(all, st.InitContainerStatuses...) {
		if of := podspec.FindContainer(p, c.Name); of != nil {
			add(of.Image, ran[c.Name])
		}
	}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil {
			add(v.Image.Reference, ran[ofVolume(v.Name)])
		}
	}
	return out
}

func startOf(c v1.ContainerStatus) time.Time {
	switch {
	case c.State.Running != nil:
		return c.State.Running.StartedAt.Time
	case c.State.Terminated != nil:
		return c.State.Terminated.StartedAt.Time
	}
	return time.Time{}
}
