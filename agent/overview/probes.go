package overview

import (
	"time"

	"monopod/agent/metrics"
	"monopod/agent/probe"
)

// ProbeCounter returns the observer that counts the results of probes.
func ProbeCounter(m *metrics.Metrics) func(*probe.Target, probe.Kind, probe.Finding, time.Duration) {
	results := map[probe.Finding]string{probe.Succeeded: metrics.ProbeSuccessful, probe.Failed: metrics.ProbeFailed, probe.Unknown: metrics.ProbeUnknown}
	return func(t *probe.Target, k probe.Kind, f probe.Finding, took time.Duration) {
		m.Probe(metrics.Probed{Kind: k.Title(), Container: t.Container.Name, Pod: t.Pod.Name, Namespace: t.Pod.Namespace, UID: string(t.Pod.UID)}, results[f], took)
	}
}
