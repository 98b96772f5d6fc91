package overview

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/metrics"
	"monopod/agent/probe"
)

func TestEachFindingOfAProbeIsCountedUnderItsName(t *testing.T) {
	m := metrics.New(metrics.Config{})
	count := ProbeCounter(m)
	target := &probe.Target{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n", UID: "u"}}, Container: &v1.Container{Name: "c"}}
	count(target, probe.Liveness, probe.Succeeded, time.Second)
	count(target, probe.Readiness, probe.Failed, time.Second)
	count(target, probe.Startup, probe.Unknown, time.Second)
	families, err := m.ProbeRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, each := range f.Metric {
			if each.Counter == nil {
				continue
			}
			of := map[string]string{}
			for _, l := range each.Label {
				of[l.GetName()] = l.GetValue()
			}
			got = append(got, of["probe_type"]+" "+of["result"]+" of "+of["namespace"]+"/"+of["pod"]+" "+of["container"]+" "+of["pod_uid"])
		}
	}
	slices.Sort(got)
	if want := []string{"Liveness successful of default/web-n c u", "Readiness failed of default/web-n c u", "Startup unknown of default/web-n c u"}; !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
