package agent

import (
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/podspec"
	"monopod/agent/status"
	"monopod/manifests"
)

// hideSecrets has the values of the pods' env hidden in what the public learns of
// them. The pods are all that are wanted.
func (l *syncLoop) hideSecrets(all []*manifests.Pod) {
	pods := make([]*v1.Pod, len(all))
	for k := range all {
		pods[k] = all[k].Pod
	}
	l.shared.Events.Know(pods)
}

// hideSecretsOf is hideSecrets for what former agents accepted.
func (l *syncLoop) hideSecretsOf(all []*checkpoint.Checkpoint) {
	pods := make([]*v1.Pod, len(all))
	for k := range all {
		pods[k] = all[k].Pod
	}
	l.shared.Events.Know(pods)
}

// recordProblems tells of what is wrong with manifests since it was reported last.
func (l *syncLoop) recordProblems(m *status.Manifests) {
	now := map[string]bool{}
	tell := func(about string, all []status.Problem) {
		for _, p := range all {
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

// recordStart tells that the agent has started, and whether the machine was
// booted since the last one did.
func (a *Agent) recordStart() {
	node := events.NodeRef(a.cfg.NodeName)
	a.events.Record(node, v1.EventTypeNormal, "Starting", "Starting monopod.")
	now, path := checkpoint.ReadBoot().ID, a.root.Path("boot")
	if now == "" {
		return
	}
	b, _ := os.ReadFile(path) // none: nobody knows of an earlier boot
	before := strings.TrimSpace(string(b))
	if before == now {
		return
	}
	if before != "" {
		a.events.Event(node, v1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", a.cfg.NodeName, now))
	}
	if err := status.WriteFile(path, []byte(now+"\n"), 0o600); err != nil {
		a.log.Warn("a reboot will not be noticed", "err", err)
	}
}

// recordResolvConf tells that pods will not get all search domains of the machine.
func (a *Agent) recordResolvConf(n *podspec.Host) {
	if len(podspec.LimitSearches(n.Resolv.Searches)) < len(n.Resolv.Searches) {
		a.events.Event(events.NodeRef(n.Name), v1.EventTypeWarning, "CheckLimitsForResolvConf",
			fmt.Sprintf("Resolv.conf file '%s' contains search line with too many or too long domains: pods get the first %d of %d",
				a.cfg.ResolvConf, len(podspec.LimitSearches(n.Resolv.Searches)), len(n.Resolv.Searches)))
	}
}

// recordTrouble tells of what goes wrong on the node itself.
func (a *Agent) recordTrouble(reason, message string) {
	a.events.Record(events.NodeRef(a.cfg.NodeName), v1.EventTypeWarning, reason, message)
}
