package agent

import (
	"encoding/json"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
)

// A pod is reported with the manifest that was accepted: who compares a file with the
// report compares it with what runs.
func TestTheReportHasTheManifestThatWasAccepted(t *testing.T) {
	const doc = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, annotations: {team: blue}}
spec:
  hostname: w
  volumes: [{name: tmp}]
  containers:
  - name: c
    image: img:1
    env: [{name: PASSWORD, value: hunter2}]
    resources: {limits: {cpu: 1000m, memory: 64Mi}}
    volumeMounts: [{name: tmp, mountPath: /tmp}]
`
	live(t, func(r *rig) {
		r.want(doc)
		r.after(time.Minute)
		pods, _ := manifests.Decode("/elsewhere.yaml", []byte(doc), r.options)
		reported, ok := r.store.Pod(pods[0].Key().String())
		if !ok || reported.Status.Phase != v1.PodRunning {
			t.Fatalf("the pod is not reported as running: %v", reported)
		}
		text, err := json.Marshal(reported)
		var has v1.Pod
		if err != nil || json.Unmarshal(text, &has) != nil {
			t.Fatal(err)
		}
		status.SetProblems(&has, nil)
		if v := update.Compare(&has, pods[0].Pod); v.Kind != update.Nothing {
			t.Errorf("the same file is %v: %v", v.Kind, v.Fields)
		}
		if got := manifests.Restored(&has); got != pods[0].Digest {
			t.Errorf("the digest is %s, not %s", got, pods[0].Digest)
		}
	})
}
