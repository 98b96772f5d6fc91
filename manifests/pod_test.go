package manifests

import (
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
)

func TestIdentity(t *testing.T) {
	p := accepted(t, node1, podYAML("web"))
	if p.Name != "web-node1" || p.Namespace != "default" || p.Kind != "Pod" || p.APIVersion != "v1" || p.Status.Phase != v1.PodPending {
		t.Errorf("%+v", p.ObjectMeta)
	}
	hex := regexp.MustCompile(`^[0-9a-f]{32}$`)
	if !hex.MatchString(string(p.UID)) || !hex.MatchString(p.Digest) || string(p.UID) == p.Digest {
		t.Errorf("uid %s, digest %s", p.UID, p.Digest)
	}
	if p.Annotations["kubernetes.io/config.hash"] != string(p.UID) || p.Annotations["kubernetes.io/config.source"] != "file" || p.Annotations["kubernetes.io/config.seen"] == "" {
		t.Errorf("annotations %v", p.Annotations)
	}
	if p := accepted(t, Options{NodeName: "node1"}, podYAML("web")); p.Name != "web" {
		t.Errorf("without suffix: %s", p.Name)
	}
}

func TestUIDAndDigest(t *testing.T) {
	decode := func(file, node, text string) *Pod {
		pods, problems := Decode(file, []byte(text), Options{NodeName: node, NameSuffix: true})
		if len(pods) != 1 {
			t.Fatal(problems)
		}
		return pods[0]
	}
	base := decode("/m/x.yaml", "n", podYAML("a"))
	tests := []struct {
		name            string
		p               *Pod
		sameUID, sameID bool
	}{
		{"comments and order", decode("/m/x.yaml", "n", "# x\n"+`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"image":"busybox","name":"c"}]},"metadata":{"name":"a"}}`), true, true},
		{"a default said", decode("/m/x.yaml", "n", podYAML("a", "restartPolicy: Always")), true, true},
		{"a mirror annotation", decode("/m/x.yaml", "n", strings.Replace(podYAML("a"), "metadata:", "metadata:\n  annotations: {kubernetes.io/config.mirror: x, kubernetes.io/config.hash: z}", 1)), true, true},
		{"a status", decode("/m/x.yaml", "n", podYAML("a")+"status: {phase: Failed}\n"), true, true},
		{"another file", decode("/m/y.yaml", "n", podYAML("a")), false, true},
		{"another node", decode("/m/x.yaml", "o", podYAML("a")), false, true},
		{"another image", decode("/m/x.yaml", "n", image(podYAML("a"), "b")), false, false},
		{"another label", decode("/m/x.yaml", "n", strings.Replace(podYAML("a"), "metadata:", "metadata:\n  labels: {a: b}", 1)), false, false},
	}
	for _, tt := range tests {
		if (tt.p.UID == base.UID) != tt.sameUID || (tt.p.Digest == base.Digest) != tt.sameID {
			t.Errorf("%s: uid %s, digest %s; base %s, %s", tt.name, tt.p.UID, tt.p.Digest, base.UID, base.Digest)
		}
		if _, ok := tt.p.Annotations["kubernetes.io/config.mirror"]; ok {
			t.Errorf("%s: the mirror annotation is there", tt.name)
		}
	}
}

func TestExplicitUID(t *testing.T) {
	with := func(uid string) string {
		return strings.Replace(podYAML("a"), "metadata:", "metadata:\n  uid: \""+uid+"\"", 1)
	}
	p := accepted(t, node1, with("My-Pod-1"))
	if p.UID != "My-Pod-1" || p.Annotations["kubernetes.io/config.hash"] != "My-Pod-1" {
		t.Errorf("uid %s", p.UID)
	}
	for _, uid := range []string{"../x", "a b", "a_b", "é", strings.Repeat("a", 64)} {
		_, problems := Decode("/m/x.yaml", []byte(with(uid)), node1)
		checkWords(t, problems, "4:8 metadata.uid: Invalid value")
	}
}

func TestStringsOfPod(t *testing.T) {
	p := decode.Problem{File: "f", Message: "m"}
	if p.Error() != "f: m" || (Key{Namespace: "ns", Name: "n"}).String() != "ns/n" {
		t.Error(p.Error())
	}
}
