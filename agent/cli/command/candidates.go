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

// Candidates are what a Tab can stand for, nothing if the agent does not answer.
type Candidates struct{ pods []v1.Pod }

// AskCandidates asks the agent for its pods.
func AskCandidates(ctx context.Context, socket string) Candidates {
	body, err := client.GetWithin(ctx, completeTimeout, socket, "/pods")
	var list v1.PodList
	if err != nil || json.Unmarshal(body, &list) != nil {
		return Candidates{}
	}
	return Candidates{list.Items}
}

// Pods returns the pods by the shortest name that means one of them only, and
// has a namespace if what was typed has one.
func (c Candidates) Pods(namespace, typed string) []Candidate {
	var out []Candidate
	for i := range c.pods {
		p := &c.pods[i]
		if namespace != "" && p.Namespace != namespace {
			continue
		}
		names := []string{print.ShortName(p), p.Namespace + "/" + print.ShortName(p)}
		if strings.Contains(typed, "/") {
			names = names[1:]
		}
		name := p.Namespace + "/" + p.Name
		for _, shorter := range names {
			if found, err := client.FindPod(c.pods, shorter, namespace); err == nil && found == p {
				name = shorter
				break
			}
		}
		out = append(out, Candidate{name, print.Summarize(p, time.Now()).Word})
	}
	return out
}

// Containers returns those of a pod that can be named.
func (c Candidates) Containers(pod, namespace string) []Candidate {
	p, err := client.FindPod(c.pods, pod, namespace)
	if err != nil {
		return nil
	}
	var out []Candidate
	for _, k := range p.Spec.Containers {
		out = append(out, Candidate{k.Name, k.Image})
	}
	for _, k := range p.Spec.InitContainers {
		out = append(out, Candidate{k.Name, "init container " + k.Image})
	}
	return out
}

// Namespaces returns those that have pods.
func (c Candidates) Namespaces() []Candidate {
	var all []string
	for i := range c.pods {
		all = append(all, c.pods[i].Namespace)
	}
	slices.Sort(all)
	var out []Candidate
	for _, n := range slices.Compact(all) {
		out = append(out, Candidate{Text: n})
	}
	return out
}
