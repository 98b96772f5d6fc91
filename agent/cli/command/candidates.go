package command

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
)

// completeTimeout bounds what a person waits for after a Tab.
const completeTimeout = time.Second

// Candidate is something that could be typed, and what it is.
type Candidate struct{ Text, About string }

// Pods are those of an agent, none if it does not answer.
type Pods []v1.Pod

// AskPods asks the agent for its pods.
func AskPods(ctx context.Context, socket string) Pods {
	var list v1.PodList
	body, err := client.GetWithin(ctx, completeTimeout, socket, "/pods")
	if err != nil || json.Unmarshal(body, &list) != nil {
		return nil
	}
	return list.Items
}

// Names returns the pods by the shortest name that means one of them only, and
// has a namespace if what was typed has one.
func (all Pods) Names(namespace, typed string) (out []Candidate) {
	for i := range all {
		p := &all[i]
		if namespace != "" && p.Namespace != namespace {
			continue
		}
		names := []string{print.ShortName(p), p.Namespace + "/" + print.ShortName(p), p.Namespace + "/" + p.Name}
		if strings.Contains(typed, "/") {
			names = names[1:]
		}
		for len(names) > 1 {
			if found, err := client.FindPod(all, names[0], namespace); err == nil && found == p {
				break
			}
			names = names[1:]
		}
		out = append(out, Candidate{names[0], print.Summarize(p, time.Now()).Word})
	}
	return out
}

// Containers returns those of a pod that can be named.
func (all Pods) Containers(pod, namespace string) (out []Candidate) {
	p, err := client.FindPod(all, pod, namespace)
	if err != nil {
		return nil
	}
	for _, k := range p.Spec.Containers {
		out = append(out, Candidate{k.Name, k.Image})
	}
	for _, k := range p.Spec.InitContainers {
		out = append(out, Candidate{k.Name, "init container " + k.Image})
	}
	return out
}

// Namespaces returns those that have pods.
func (all Pods) Namespaces() (out []Candidate) {
	for _, p := range all {
		if !slices.Contains(out, Candidate{Text: p.Namespace}) {
			out = append(out, Candidate{Text: p.Namespace})
		}
	}
	return out
}
