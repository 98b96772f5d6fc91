package podspec

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"path/filepath"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
)

// LogDir returns the log directory of one instance of a pod.
func LogDir(podLogs string, key manifests.Key, uid string) string {
	return filepath.Join(podLogs, key.Namespace+"_"+key.Name+"_"+uid)
}

// Keys of labels and annotations. Those of io.kubernetes are the kubelet's; crictl, log
// collectors and the kubelet itself read them.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"

	AnnHash              = "io.kubernetes.container.hash"
	annRestartCount      = "io.kubernetes.container.restartCount"
	AnnMessagePath       = "io.kubernetes.container.terminationMessagePath"
	annMessagePolicy     = "io.kubernetes.container.terminationMessagePolicy"
	AnnPreStop           = "io.kubernetes.container.preStopHandler"
	AnnPorts             = "io.kubernetes.container.ports"
	AnnTerminationGrace  = "io.kubernetes.pod.terminationGracePeriod"
	annDeletionGrace     = "io.kubernetes.pod.deletionGracePeriod"
	annAppArmorContainer = "container.apparmor.security.beta.kubernetes.io/" // + container name

	// LabelInstance marks sandboxes and containers as ours; its value is the id of the root dir.
	// monopod never changes those without its own value.
	LabelInstance = "monopod.instance"
	// AnnBackoff keeps a container's crash-loop back-off over a restart of the agent.
	AnnBackoff = "monopod.backoff"
	// AnnEnvObjects has what a container's variables and volumes were made of, see
	// objects.Set.EnvOf.
	AnnEnvObjects = "monopod.env-objects"
	// AnnRevision is the revision of the pod's version that a container was created for; without it
	// the revision is 0, the first.
	AnnRevision = "monopod.revision"
)

// podLabels returns the labels that identify the pod of a sandbox or container.
func podLabels(p *v1.Pod, n *Host) map[string]string {
	return map[string]string{
		LabelPodName:      p.Name,
		LabelPodNamespace: p.Namespace,
		LabelPodUID:       string(p.UID),
		LabelInstance:     n.Instance,
	}
}

// sandboxLabels returns the pod's own labels, overridden by those that identify it.
func sandboxLabels(p *v1.Pod, n *Host) map[string]string {
	l := map[string]string{}
	maps.Copy(l, p.Labels)
	maps.Copy(l, podLabels(p, n))
	return l
}

func containerLabels(p *v1.Pod, c *v1.Container, n *Host) map[string]string {
	l := podLabels(p, n)
	l[labelContainerName] = c.Name
	return l
}

// containerAnnotations returns what a later agent needs to stop, report and restart the
// container without its manifest.
func containerAnnotations(p *v1.Pod, c *v1.Container, in Input) (map[string]string, error) {
	a := map[string]string{
		AnnHash:          ContainerHash(c),
		annRestartCount:  strconv.FormatUint(uint64(in.Attempt), 10),
		AnnMessagePath:   c.TerminationMessagePath,
		annMessagePolicy: string(c.TerminationMessagePolicy),
	}
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		a[AnnTerminationGrace] = strconv.FormatInt(*s, 10)
	}
	if s := p.DeletionGracePeriodSeconds; s != nil {
		a[annDeletionGrace] = strconv.FormatInt(*s, 10)
	}
	if in.BackOff != "" {
		a[AnnBackoff] = in.BackOff
	}
	if in.EnvObjects != "" {
		a[AnnEnvObjects] = in.EnvObjects
	}
	if in.Revision > 0 {
		a[AnnRevision] = strconv.Itoa(in.Revision)
	}
	if hook := PreStop(c); hook != "" {
		a[AnnPreStop] = hook
	}
	if len(c.Ports) > 0 {
		b, err := json.Marshal(c.Ports)
		if err != nil {
			return nil, fmt.Errorf("ports of container %s: %w", c.Name, err)
		}
		a[AnnPorts] = string(b)
	}
	return a, nil
}

// PreStop returns a container's preStop hook as JSON; "": none.
func PreStop(c *v1.Container) string {
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
		return ""
	}
	b, _ := json.Marshal(c.Lifecycle.PreStop) // hooks always marshal
	return string(b)
}

// ContainerHash returns the kubelet's hash over a container's name and image:
// FNV-1a of their JSON, printed the way fmt prints a byte slice with its type.
func ContainerHash(c *v1.Container) string {
	b, _ := json.Marshal(map[string]string{"name": c.Name, "image": c.Image}) // strings always marshal
	h := fnv.New32a()
	fmt.Fprintf(h, "([]uint8)%v", b)
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

// LogDirectory returns the absolute directory of a pod's logs.
func LogDirectory(podLogs string, p *v1.Pod) string {
	return filepath.Join(podLogs, p.Namespace+"_"+p.Name+"_"+string(p.UID))
}

// LogPath returns a container's log file, relative to the pod's directory.
func LogPath(container string, attempt uint32) string {
	return filepath.Join(container, strconv.FormatUint(uint64(attempt), 10)+".log")
}

// LogLink returns the link in dir by which log collectors find a container's log. Its
// name is cut to the length of a file name, even if that cuts the id.
func LogLink(dir string, pod manifests.Key, container, id string) string {
	name := pod.Name + "_" + pod.Namespace + "_" + container + "-" + id
	return filepath.Join(dir, name[:min(len(name), 251)]+".log")
}
