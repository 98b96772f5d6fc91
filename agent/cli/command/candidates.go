package command

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/print"
)

// completeTimeout bounds the wait after a Tab.
const completeTimeout = time.Second

// Pods are the pods of an agent, none if it does not answer.
type Pods []v1.Pod

// AskPods requests the agent's pods.
func AskPods(ctx context.Context, socket string) Pods {
	var list v1.PodList
	body, err := client.GetWithin(ctx, completeTimeout, socket, "/pods")
	if err != nil || json.Unmarshal(body, &list) != nil {
		return nil
	}
	return list.Items
}

// Names returns the pods by the shortest name that means only one of them, and has a namespace if
// the typed text has one.
func (all Pods) Names(namespace, typed string) (out []string) {
	for i := range all {
		p := &all[i]
		if namespace != "" && p.Namespace != namespace {
			continue
		}
		names := []string{print.ShortName(p), p.Namespace + "/" + print.ShortName(p), p.Namespace + "/" + p.Name}
		if strings.Contains(typed, "/") {
			names = names[1:]
		}
		for ; len(names) > 1; names = names[1:] {
			if found, err := client.FindPod(all, names[0], namespace); err == nil && found == p {
				break
			}
		}
		out = append(out, names[0]+"\t"+print.Summarize(p, time.Now()).Word)
	}
	return out
}

// Containers returns the containers of a pod that can be named.
func (all Pods) Containers(pod, namespace string) (out []string) {
	p, err := client.FindPod(all, pod, namespace)
	if err != nil {
		return nil
	}
	for _, k := range p.Spec.Containers {
		out = append(out, k.Name+"\t"+k.Image)
	}
	for _, k := range p.Spec.InitContainers {
		out = append(out, k.Name+"\tinit container "+k.Image)
	}
	return out
}

// Namespaces returns the namespaces that have pods.
func (all Pods) Namespaces() (out []string) {
	for _, p := range all {
		if !slices.Contains(out, p.Namespace) {
			out = append(out, p.Namespace)
		}
	}
	return out
}

// AskVersions requests from the agent the versions that a pod can go back to; none if it does not
// answer.
func AskVersions(ctx context.Context, socket, pod, namespace string) (out []string) {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	h, _, err := client.History(ctx, socket, pod, namespace)
	if err != nil {
		return nil
	}
	for _, v := range h.Versions {
		if !v.Running {
			out = append(out, print.ShortHash(v.Hash)+"\t"+strings.Join(v.Images, ","))
		}
	}
	return out
}
