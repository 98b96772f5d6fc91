package once

import (
	"fmt"
	"slices"
	"strings"

	"monopod/agent/print"

	v1 "k8s.io/api/core/v1"
)

// names are the pods' names for people: their short names, with the namespace if there are
// several.
type names struct{ spaces bool }

func namesOf(pods []*v1.Pod) names {
	return names{spaces: slices.ContainsFunc(pods, func(p *v1.Pod) bool { return p.Namespace != pods[0].Namespace })}
}

func (n names) pod(p *v1.Pod) string {
	if n.spaces {
		return p.Namespace + "/" + print.ShortName(p)
	}
	return print.ShortName(p)
}

// Chosen is the container whose exit code is the outcome.
type Chosen struct {
	Pod       *v1.Pod
	Container string // "": the pod as a whole
}

// Choose finds the pod or container that --exit-code-from names: POD or
// POD/CONTAINER, either with NAMESPACE/ before it. Names of pods may end in the
// node's name.
func Choose(pods []*v1.Pod, name string) (*Chosen, error) {
	chosen, err := find(pods, name)
	if err != nil {
		return nil, fmt.Errorf("--exit-code-from %w", err)
	}
	if chosen.Container == "" {
		return choosePod(chosen.Pod)
	}
	return chosen, nil
}

// find is Choose for any flag.
func find(pods []*v1.Pod, name string) (*Chosen, error) {
	parts := strings.Split(name, "/")
	for _, form := range []struct{ space, pod, container int }{{-1, 0, 1}, {-1, 0, -1}, {0, 1, 2}, {0, 1, -1}} {
		if max(form.pod, form.container)+1 != len(parts) {
			continue
		}
		for _, p := range pods {
			if form.space >= 0 && p.Namespace != parts[form.space] || parts[form.pod] != p.Name && parts[form.pod] != print.ShortName(p) {
				continue
			}
			if form.container < 0 {
				return &Chosen{Pod: p}, nil
			}
			if slices.ContainsFunc(containers(p), func(c v1.Container) bool { return c.Name == parts[form.container] }) {
				return &Chosen{p, parts[form.container]}, nil
			}
		}
	}
	n, all := namesOf(pods), []string{}
	for _, p := range pods {
		for _, c := range containers(p) {
			all = append(all, n.pod(p)+"/"+c.Name)
		}
	}
	return nil, fmt.Errorf("%q names no pod or container here; there is %s", name, strings.Join(all, ", "))
}

// choosePod takes the pod's only container if there is only one.
func choosePod(p *v1.Pod) (*Chosen, error) {
	if len(p.Spec.Containers) == 1 && !isJob(p) {
		return &Chosen{p, p.Spec.Containers[0].Name}, nil
	}
	if !isJob(p) {
		return nil, fmt.Errorf("--exit-code-from %s: the pod does not end by itself; name one of its containers, as in %[1]s/%s", print.ShortName(p), p.Spec.Containers[0].Name)
	}
	return &Chosen{Pod: p}, nil
}

func containers(p *v1.Pod) []v1.Container {
	return slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
}
