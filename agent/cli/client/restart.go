package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/agent/status"
)

// Restart restarts pods or containers, one after the other, and waits until they run again. What
// it printed as restarted is restarted even if a later one fails.
func Restart(ctx context.Context, o Request) error {
	ctx, cancel := bounded(ctx, o.Timeout)
	defer cancel()
	all, err := o.pods(ctx, ", and nothing is restarted")
	if err != nil {
		return err
	}
	type target struct {
		pod       *v1.Pod
		container string
	}
	var targets []target
	for _, name := range o.Choice.Names { // all names first: if one is wrong, nothing is restarted
		p, container, err := FindContainer(all, name, o.Choice.Namespace)
		if err != nil {
			return err
		}
		targets = append(targets, target{p, container})
	}
	var r status.Runtime
	if err := GetJSON(ctx, o.Socket, "/runtime", &r); err == nil && !r.Up {
		fmt.Fprintf(o.Err, "monopod: %s; the agent waits up to 20s for it before it gives the restart up\n", print.RuntimeWords(r, time.Now())[0])
	}
	here, err := newPresence(ctx, o.Socket)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if err := o.restart(ctx, t.pod, t.container, here); err != nil {
			return err
		}
	}
	return nil
}

func (o Request) restart(ctx context.Context, p *v1.Pod, container string, here *presence) error {
	path := "/restart/" + p.Namespace + "/" + p.Name
	subject := subjectOf(p)
	if container != "" {
		path += "/" + container
		subject = "container " + container + " of " + subject
	}
	body, err := post(ctx, sendTimeout, o.Socket, path)
	if err != nil {
		return err
	}
	var accepted status.Restart
	if err := Decode(body, &accepted, o.Socket, path); err != nil {
		return err
	}
	if o.NoWait {
		_, err := fmt.Fprintf(o.Out, "%s is being restarted\n", subject)
		return err
	}
	if err := o.restarted(subject, &accepted).await(ctx, p, here, o.Err); err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, "%s is restarted\n", subject)
	return err
}

// notRestarted is the error text for what does not run again in time.
const notRestarted = "does not run again"

// restarted is the goal that everything that is replaced runs again, or has ended again since.
func (o Request) restarted(subject string, accepted *status.Restart) goal {
	gone := fmt.Errorf("%s was removed or replaced meanwhile", subject)
	return goal{subject: subject, late: notRestarted, timeout: o.Timeout, gone: gone,
		missing: func(now *v1.Pod) (string, error) {
			if string(now.UID) != accepted.UID {
				return "", gone
			}
			return stillToCome(now, accepted.Replaces), nil
		},
		outlasts: "the agent does not run any more; it has recorded the restart of " + subject + ", which happens once it runs again"}
}

// stillToCome returns what of a restart is missing, "" if nothing is.
func stillToCome(p *v1.Pod, replaces map[string]string) string {
	statuses := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	for _, name := range slices.Sorted(maps.Keys(replaces)) {
		s, _ := print.StatusOf(statuses, name)
		_, id, _ := strings.Cut(s.ContainerID, "://")
		switch {
		case id != "" && id != replaces[name] && s.State.Waiting == nil:
		case id != "" && id != replaces[name] && s.LastTerminationState.Terminated != nil && print.Waits(s): // it ran and crashed
		default:
			if words := print.PodWords([]v1.Pod{*p}, time.Now()); len(words) > 0 {
				return strings.Join(words, "; ")
			}
			return "container " + name + " does not run yet"
		}
	}
	return ""
}
