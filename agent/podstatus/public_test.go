package podstatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/admission"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/manifests"
)

// Each status that the agent makes itself says what anybody may read of it.
func TestEachStatusSaysWhatIsPublic(t *testing.T) {
	pod := &manifests.Pod{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}}
	pod.Spec.Containers = []v1.Container{{Name: "a"}}
	said := message.Of("waits for %s: %s", message.Name("db"), message.Private("fish"))
	const want = "waits for db: <elided>"
	refused, public := RefusedStatus(pod.Pod, admission.Rejection{Reason: "R", Message: said}, metav1.Time{})
	if got := public.Public(refused.Message); got != "Pod was rejected: "+want {
		t.Errorf("one that is refused: %q", got)
	}
	held, public := WaitingForPods(pod, time.Now(), said, nil)
	if got := public.Public(held.ContainerStatuses[0].State.Waiting.Message); got != want {
		t.Errorf("one that waits for others: %q", got)
	}
	if got := public.Public(held.Conditions[0].Message); got != want {
		t.Errorf("its condition: %q", got)
	}
	if got := public.Public(held.Conditions[2].Message); got != "containers with unready status: [a]" {
		t.Errorf("its readiness: %q", got)
	}
	halted, public := HaltedStatus(pod, plan.Waiting{Reason: "R", Message: said})
	if got := public.Public(halted.Message); got != want {
		t.Errorf("one that is stopped: %q", got)
	}
	if got := plan.EndTexts().Public(plan.LostMessage); got != plan.LostMessage {
		t.Errorf("one that was lost: %q", got)
	}
}
