package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/print"
	"monopod/cri"
)

// nowTimeout bounds the request to the runtime if no agent runs.
const nowTimeout = 2 * time.Second

// Stopped returns which containers no longer run that the agent, which does not run, had reported
// as running.
func Stopped(ctx context.Context, pods []v1.Pod, endpoint string) []string {
	if len(deadWords(pods, nil)) == 0 {
		return nil // none ran
	}
	ctx, cancel := context.WithTimeout(ctx, nowTimeout)
	defer cancel()
	endpoints := cri.WellKnown()
	if endpoint != "" {
		endpoints = []string{endpoint}
	}
	client, err := cri.Dial(endpoints...)
	if err != nil {
		return []string{print.OneLine(err.Error())}
	}
	defer client.Close()
	now, err := client.Containers(ctx, nil)
	if cri.Unavailable(err) {
		return []string{"whether the containers still run is not known: no runtime answers at " + client.Endpoint()}
	}
	if err != nil {
		return []string{"whether the containers still run is not known: " + print.OneLine(err.Error())}
	}
	return deadWords(pods, now)
}

func deadWords(pods []v1.Pod, now []*rt.Container) []string {
	states := map[string]rt.ContainerState{}
	for _, c := range now {
		states[c.Id] = c.State
	}
	var words []string
	for i := range pods {
		p := &pods[i]
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			_, id, _ := strings.Cut(s.ContainerID, "://")
			state, there := states[id]
			switch {
			case s.State.Running == nil || there && state == rt.ContainerState_CONTAINER_RUNNING:
			case there:
				words = append(words, fmt.Sprintf("%s/%s: container %s does not run any more, and no agent restarts it", p.Namespace, print.ShortName(p), s.Name))
			default:
				words = append(words, fmt.Sprintf("%s/%s: container %s is gone, and no agent restarts it", p.Namespace, print.ShortName(p), s.Name))
			}
		}
	}
	return words
}
