package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/manifests/decode"
)

// ErrNoPod is the cause of errors about a name that no pod has (yet); a name that several pods
// have is another error.
var ErrNoPod = errors.New("no such pod")

// NameError is one sentence about a name, with its cause.
type NameError struct {
	Text  string
	Cause error
}

func (e *NameError) Error() string        { return e.Text }
func (e *NameError) Is(target error) bool { return e.Cause != nil && e.Cause == target }

// FindPod returns the pod of a name: its name in the manifest ("web"), its full name ("web-node"),
// or either behind its namespace ("kube-system/web"). namespace limits the search; "" is all. If a
// pod's full name is another's short one in the same namespace, the full name wins. Its errors are
// one sentence that names the candidates or close names.
func FindPod(pods []v1.Pod, name, namespace string) (*v1.Pod, error) {
	base, within, err := splitName(withoutKind(pods, name), namespace)
	if err != nil {
		return nil, err
	}
	full := map[string]bool{} // namespaces in which a pod has this full name
	for i := range pods {
		if pods[i].Name == base {
			full[pods[i].Namespace] = true
		}
	}
	var found []*v1.Pod
	for i := range pods {
		p := &pods[i]
		if within != "" && p.Namespace != within {
			continue
		}
		if p.Name == base || print.ShortName(p) == base && !full[p.Namespace] {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil, &NameError{noPod(pods, base, within), ErrNoPod}
	case 1:
		return found[0], nil
	}
	var names []string
	for _, p := range found {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	slices.Sort(names)
	return nil, &NameError{Text: fmt.Sprintf("%q may be any of %s: say which", name, strings.Join(names, ", "))}
}

// isKind reports whether a word is kubectl's word for pods, and no pod or namespace.
func isKind(pods []v1.Pod, word string) bool {
	return slices.Contains([]string{"pod", "pods", "po"}, word) && !slices.ContainsFunc(pods, func(p v1.Pod) bool {
		return p.Namespace == word || p.Name == word || print.ShortName(&p) == word
	})
}

// withoutKind removes "pod/" from the front of a name.
func withoutKind(pods []v1.Pod, name string) string {
	if kind, rest, ok := strings.Cut(name, "/"); ok && isKind(pods, kind) {
		return rest
	}
	return name
}

// splitName removes a namespace from the front of a name.
func splitName(name, namespace string) (base, within string, err error) {
	front, base, ok := strings.Cut(name, "/")
	switch {
	case !ok:
		base, front = name, namespace
	case namespace != "" && front != namespace:
		return "", "", &NameError{Text: fmt.Sprintf("%q is not in namespace %s: write the namespace once", name, namespace)}
	}
	if base == "" || ok && front == "" || strings.Contains(base, "/") {
		return "", "", &NameError{Text: fmt.Sprintf("%q is no pod's name: write POD or NAMESPACE/POD", name)}
	}
	return base, front, nil
}

// FindContainer splits POD or POD/CONTAINER, where POD is as for FindPod; container is "" for a
// pod alone.
func FindContainer(pods []v1.Pod, name, namespace string) (p *v1.Pod, container string, err error) {
	name = withoutKind(pods, name)
	p, whole := FindPod(pods, name, namespace)
	k := strings.LastIndexByte(name, '/')
	if k < 0 {
		return p, "", whole
	}
	q, front := FindPod(pods, name[:k], namespace)
	switch {
	case front != nil && whole == nil:
		return p, "", nil
	case front != nil && (namespace != "" || strings.Count(name, "/") > 1):
		return nil, "", front
	case front != nil:
		return nil, "", whole
	}
	container, err = ContainerOf(q, name[k+1:])
	switch {
	case whole != nil:
		return q, container, err
	case err != nil:
		return p, "", nil
	}
	return nil, "", &NameError{Text: fmt.Sprintf("%q may be pod %s/%s or container %s of pod %s/%s: write namespace, pod and container",
		name, p.Namespace, p.Name, container, q.Namespace, q.Name)}
}

// DefaultContainer is the annotation with which a pod names the container that commands mean if
// none is named (kubectl: the same).
const DefaultContainer = "kubectl.kubernetes.io/default-container"

// ContainerOf returns the container of that name; for "" the one that the pod's annotation names,
// else its first.
func ContainerOf(p *v1.Pod, name string) (string, error) {
	var names []string
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		names = append(names, c.Name)
	}
	wanted := cmp.Or(name, p.Annotations[DefaultContainer])
	switch {
	case slices.Contains(names, wanted):
		return wanted, nil
	case name == "" && len(names) > 0:
		return names[0], nil
	}
	return "", &NameError{Text: fmt.Sprintf("pod %s/%s has no container %q: it has %s", p.Namespace, print.ShortName(p), name, strings.Join(names, ", "))}
}

// closeShown is how many close names a message has at most.
const closeShown = 3

// noPod returns the sentence that no pod has the name, and which have a similar one.
func noPod(pods []v1.Pod, base, within string) string {
	text := fmt.Sprintf("there is no pod %q", base)
	if within != "" {
		text += " in namespace " + within
	}
	type near struct {
		name string
		far  int
	}
	var all []near
	for i := range pods {
		p := &pods[i]
		short := print.ShortName(p)
		far := min(decode.Distance(base, short), decode.Distance(base, p.Name))
		if strings.HasPrefix(short, base) || strings.HasPrefix(base, short) {
			far = min(far, 1)
		}
		if far <= max(1, len(base)/3) {
			all = append(all, near{p.Namespace + "/" + short, far})
		}
	}
	if len(all) == 0 {
		return text + "; `monopod ps` lists them"
	}
	slices.SortFunc(all, func(a, b near) int { return cmp.Or(a.far-b.far, strings.Compare(a.name, b.name)) })
	var names []string
	for _, n := range all[:min(len(all), closeShown)] {
		names = append(names, n.name)
	}
	return text + "; there is " + strings.Join(names, ", ")
}
