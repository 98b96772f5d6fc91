package agent

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

// Keys of labels and annotations. The io.kubernetes ones are the kubelet's;
// crictl, log collectors and the kubelet itself look for them.
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"

	annHash              = "io.kubernetes.container.hash"
	annRestartCount      = "io.kubernetes.container.restartCount"
	annMessagePath       = "io.kubernetes.container.terminationMessagePath"
	annMessagePolicy     = "io.kubernetes.container.terminationMessagePolicy"
	annPreStop           = "io.kubernetes.container.preStopHandler"
	annPorts             = "io.kubernetes.container.ports"
	annTerminationGrace  = "io.kubernetes.pod.terminationGracePeriod"
	annDeletionGrace     = "io.kubernetes.pod.deletionGracePeriod"
	annAppArmorContainer = "container.apparmor.security.beta.kubernetes.io/" // + container name

	// labelInstance marks sandboxes and containers as ours; its value names the
	// root directory. What lacks our value is never touched.
	labelInstance = "monopod.instance"
	// annBackoff carries a container's crash-loop back-off over a restart of
	// the agent.
	annBackoff = "monopod.backoff"
)

// podLabels returns what identifies the pod on sandboxes and containers alike.
func podLabels(p *v1.Pod, n *node) map[string]string {
	return map[string]string{
		labelPodName:      p.Name,
		labelPodNamespace: p.Namespace,
		labelPodUID:       string(p.UID),
		labelInstance:     n.Instance,
	}
}

// sandboxLabels returns the pod's own labels, below those that identify it.
func sandboxLabels(p *v1.Pod, n *node) map[string]string {
	l := make(map[string]string, len(p.Labels)+4)
	maps.Copy(l, p.Labels)
	maps.Copy(l, podLabels(p, n))
	return l
}

func containerLabels(p *v1.Pod, c *v1.Container, n *node) map[string]string {
	l := podLabels(p, n)
	l[labelContainerName] = c.Name
	return l
}

// containerAnnotations returns what a later agent must know to stop, report
// and restart the container without its manifest.
func containerAnnotations(p *v1.Pod, c *v1.Container, in containerInput) (map[string]string, error) {
	a := map[string]string{
		annHash:          containerHash(c),
		annRestartCount:  strconv.FormatUint(uint64(in.Attempt), 10),
		annMessagePath:   c.TerminationMessagePath,
		annMessagePolicy: string(c.TerminationMessagePolicy),
	}
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		a[annTerminationGrace] = strconv.FormatInt(*s, 10)
	}
	if s := p.DeletionGracePeriodSeconds; s != nil {
		a[annDeletionGrace] = strconv.FormatInt(*s, 10)
	}
	if in.BackOff != "" {
		a[annBackoff] = in.BackOff
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		b, err := json.Marshal(c.Lifecycle.PreStop)
		if err != nil {
			return nil, fmt.Errorf("preStop of container %s: %w", c.Name, err)
		}
		a[annPreStop] = string(b)
	}
	if len(c.Ports) > 0 {
		b, err := json.Marshal(c.Ports)
		if err != nil {
			return nil, fmt.Errorf("ports of container %s: %w", c.Name, err)
		}
		a[annPorts] = string(b)
	}
	return a, nil
}

// containerHash returns the kubelet's hash over a container's name and image:
// FNV-1a of their JSON, printed the way fmt prints a byte slice with its type.
func containerHash(c *v1.Container) string {
	b, _ := json.Marshal(map[string]string{"name": c.Name, "image": c.Image}) // strings always marshal
	h := fnv.New32a()
	fmt.Fprintf(h, "([]uint8)%v", b)
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

// logDirectory returns the absolute directory of a pod's logs.
func logDirectory(podLogs string, p *v1.Pod) string {
	return filepath.Join(podLogs, p.Namespace+"_"+p.Name+"_"+string(p.UID))
}

// logPath returns a container's log file, relative to the pod's directory.
func logPath(container string, attempt uint32) string {
	return filepath.Join(container, strconv.FormatUint(uint64(attempt), 10)+".log")
}

// logLink returns the link in dir that log collectors know a container's log
// by. Its name is cut to what a file name may hold, even if that cuts the id.
func logLink(dir string, pod manifests.Key, container, id string) string {
	name := pod.Name + "_" + pod.Namespace + "_" + container + "-" + id
	return filepath.Join(dir, name[:min(len(name), 251)]+".log")
}
