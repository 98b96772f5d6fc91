package agent

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/status"
	"monopod/manifests"
)

// hideSecrets elides the values of the pods' env and headers, and of the Secrets that they
// refer to, in what TCP serves. all are all desired pods.
func (l *syncLoop) hideSecrets(all []*manifests.Pod) {
	pods := make([]*v1.Pod, len(all))
	for k := range all {
		pods[k] = all[k].Pod
	}
	for _, w := range l.workers {
		if w.update.Next != nil { // the version that runs on
			pods = append(pods, w.update.Pod.Pod)
		}
	}
	l.hideSecretsIn(pods)
}

// hideSecretsOf is hideSecrets for the pods that previous agents accepted.
func (l *syncLoop) hideSecretsOf(all []*checkpoint.Checkpoint) {
	pods := make([]*v1.Pod, len(all))
	for k := range all {
		pods[k] = all[k].Pod
	}
	l.hideSecretsIn(pods)
}

func (l *syncLoop) hideSecretsIn(pods []*v1.Pod) {
	now, secrets := l.shared.Disk.Objects.Now(), map[manifests.Key][]string{}
	for _, p := range pods {
		if values := now.SecretValues(p); len(values) > 0 {
			secrets[manifests.KeyOf(p)] = values
		}
	}
	l.shared.Events.KnowSecrets(secrets)
	l.shared.Events.Know(pods)
}

// recordProblems records the problems of manifests that are new since the last report.
func (l *syncLoop) recordProblems(m *status.Manifests) {
	now := map[string]bool{}
	tell := func(about string, all []status.Problem) {
		for _, p := range all {
			if p.Waits {
				continue // the pod has the event
			}
			text := p.Error()
			if now[text] = true; !l.wrong[text] {
				l.shared.Events.Record(events.FileRef(about), v1.EventTypeWarning, "FailedValidation", text)
			}
		}
	}
	tell(m.Dir, m.Problems)
	for _, f := range m.Files {
		tell(f.Path, f.Problems)
	}
	l.wrong = now
}

// recordTrouble records an error of the node itself.
func (a *Agent) recordTrouble(reason, message string) {
	a.events.Record(events.NodeRef(a.cfg.NodeName), v1.EventTypeWarning, reason, message)
}
