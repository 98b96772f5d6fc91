package documents_test

import (
	"strings"
	"testing"

	"monopod/manifests/documents"
	"monopod/manifests/documents/documenttest"
)

// Hooks and tests of helm's are helm's to run, also wrong ones; what else they are made with,
// such as a ConfigMap, may be for the pods.
func TestWhatHelmRunsIsSkippedWithANote(t *testing.T) {
	hook := func(yaml, hook string) string {
		return "---\n" + strings.Replace(yaml, "metadata:", "metadata:\n  annotations: {helm.sh/hook: "+hook+"}", 1)
	}
	inline := func(name, hook string) string {
		return "---\n" + strings.Replace(documenttest.PodYAML(name), "name: "+name, "name: "+name+"\n  annotations: {helm.sh/hook: "+hook+"}", 1)
	}
	file := documenttest.PodYAML("web") + inline("t1", "test") + inline("t2", "test-success") +
		"---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\nspec: {tempalte: {}}\n" +
		hook("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n", "pre-install")
	c := documents.Read("/m/app.yaml", []byte(file), documenttest.Node1)
	if len(c.Pods) != 1 || c.Pods[0].Name != "web-node1" || len(c.Objects) != 1 || len(c.Refused) != 0 || c.Unclear {
		t.Errorf("pods %v, objects %v, refused %v, unclear %v", c.Pods, c.Objects, c.Refused, c.Unclear)
	}
	const skipped = " is skipped: a hook or test of helm's; without the annotation it runs here"
	documenttest.CheckWords(t, c.Problems, "~14:31 metadata.annotations[helm.sh/hook]: Pod"+skipped+"\n~32:55 metadata.annotations[helm.sh/hook]: Job"+skipped)
	for _, p := range c.Problems {
		if !p.Note {
			t.Errorf("no note: %v", p)
		}
	}
}

// What ran under a monopod that did not tell hooks apart runs on.
func TestAHookThatWasAcceptedRunsOn(t *testing.T) {
	file := []byte(strings.Replace(documenttest.PodYAML("t1"), "name: t1", "name: t1\n  annotations: {helm.sh/hook: test}", 1))
	o := documenttest.Node1
	o.IsAccepted = func(p *documents.Pod) bool { return p.Name == "t1-node1" }
	if c := documents.Read("/m/app.yaml", file, o); len(c.Pods) != 1 || len(c.Problems) != 0 {
		t.Errorf("pods %v, problems %v", c.Pods, c.Problems)
	}
}
