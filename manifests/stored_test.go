package manifests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/documents"
)

// stored is a pod as a checkpoint has it: from JSON, and with what an agent adds.
func stored(t *testing.T, p *Pod) *v1.Pod {
	t.Helper()
	text, err := json.Marshal(p.Pod)
	must(t, err)
	out := &v1.Pod{}
	must(t, json.Unmarshal(text, out))
	out.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted"}
	return out
}

// A stored pod gives the digest that its manifest gives, whatever build computed its uid.
func TestAStoredPodGivesTheDigestOfItsManifest(t *testing.T) {
	docs := []string{"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: kube-system, uid: u-1, annotations: {x: z}}\nspec: {nodeName: other, containers: [{name: c, image: i}]}\n"}
	for _, spec := range append(digestSpecs, "tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 3}, {key: b, operator: Exists}]") {
		docs = append(docs, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: c, image: 'img:1'}]\n  %s\n", spec))
	}
	for _, c := range digestContainers {
		docs = append(docs, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: c, image: 'img:1', %s}]\n", c))
	}
	for _, doc := range docs {
		p := accepted(t, Options{NodeName: "node1", NameSuffix: true}, doc)
		again := stored(t, p)
		again.UID, again.Annotations[documents.AnnotationHash] = "computed-otherwise", "computed-otherwise"
		if got := Restored(again); got != p.Digest {
			t.Errorf("digest %s of the stored pod, %s of the manifest:\n%s", got, p.Digest, doc)
		}
		if again.Status.Reason != "Evicted" || again.UID != "computed-otherwise" {
			t.Errorf("the stored pod became %+v", again.ObjectMeta)
		}
	}
}

// A default that is new since the pod was stored is no change of the pod, and the
// stored pod has it then. A changed field is one.
func TestANewDefaultIsNoChangeOfAStoredPod(t *testing.T) {
	p := accepted(t, node1, podYAML("a"))
	older := stored(t, p)
	older.Spec.EnableServiceLinks, older.Spec.SchedulerName, older.Spec.Containers[0].TerminationMessagePolicy = nil, "", ""
	if got := Restored(older); got != p.Digest || older.Spec.EnableServiceLinks == nil {
		t.Errorf("digest %s, want %s; enableServiceLinks %v", got, p.Digest, older.Spec.EnableServiceLinks)
	}
	other := stored(t, p)
	other.Spec.Containers[0].Image = "other"
	if Restored(other) == p.Digest {
		t.Error("another image gives the same digest")
	}
}

// A manifest that pins another uid, or pins one no longer, is of another pod.
func TestOnlyAPinnedUIDMakesAnother(t *testing.T) {
	pinned := func(uid string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: %s}\nspec: {containers: [{name: c, image: busybox}]}\n", uid)
	}
	for _, row := range []struct {
		name, text string
		same       bool
	}{
		{"the same uid", pinned("u-1"), true},
		{"no uid any more", podYAML("a"), false},
		{"another uid", pinned("u-2"), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := watchFolder(t, t.TempDir(), nil)
			f.write("a.yaml", pinned("u-1"))
			before := f.until("a@a.yaml=busybox").Pods[0]
			f.write("a.yaml", row.text)
			f.write("b.yaml", podYAML("b"))
			after := f.until("a@a.yaml=busybox b@b.yaml=busybox").Pods[0]
			if (after.Pod == before.Pod) != row.same {
				t.Errorf("uid %s, was %s", after.UID, before.UID)
			}
		})
	}
}

// A version that a former monopod accepted with such an annotation is kept as it is, with
// a warning; any other version of the pod is refused, and the accepted one runs on.
func TestAVersionThatWasAcceptedKeepsItsAnnotations(t *testing.T) {
	text := strings.Replace(podYAML("a"), "spec:", "  annotations:\n    monopod.update-helth: 30s\nspec:", 1)
	before := node1
	before.IsAccepted = func(*Pod) bool { return true }
	was := accepted(t, before, text)

	f := watchFolder(t, t.TempDir(), func(c *SourceConfig) { c.Known = []*Pod{was} })
	f.write("a.yaml", text)
	s := f.until("a@a.yaml=busybox")
	if all := s.Files[0].Problems; len(all) != 1 || !all[0].Warning || !strings.Contains(all[0].Message, `did you mean "monopod.update-health"?`) {
		t.Errorf("problems %v", all)
	}
	f.write("a.yaml", strings.Replace(text, "busybox", "alpine", 1))
	s = f.until("a@a.yaml=busybox held:a.yaml bad:a.yaml")
	if all := s.Files[0].Problems; len(all) == 0 || all[0].Warning {
		t.Errorf("problems of another version: %v", all)
	}
	f.write("b.yaml", strings.Replace(text, "name: a", "name: b", 1)) // which is a new pod
	f.until("a@a.yaml=busybox held:a.yaml bad:a.yaml bad:b.yaml ?")
}
