package manifests

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"k8s.io/apimachinery/pkg/api/equality"

	"monopod/manifests/documents"
)

// seedManifests gives a fuzzer what a kubelet was recorded with, the demo's
// pods, and corners of the syntax.
func seedManifests(f *testing.F) {
	f.Helper()
	recordings, err := filepath.Glob("../testdata/golden/*.json")
	if err != nil || len(recordings) == 0 {
		f.Fatalf("no golden manifests: %v", err)
	}
	for _, path := range recordings {
		for _, m := range goldenManifests(f, path) {
			f.Add(m)
		}
	}
	demo, _ := filepath.Glob("../testdata/manifests/*.yaml")
	for _, path := range demo {
		if data, err := os.ReadFile(path); err == nil {
			f.Add(data)
		}
	}
	for _, text := range []string{
		"", "---", "a: b", "{}", "[]", "{", "\xff\xfe", "\xff\xfe) x\x00", "\xef\xbb\xbf", podYAML("a"), podYAML("a") + "---\n" + podYAML("b"),
		"apiVersion: v1\nkind: List\nitems: &i\n- *i\n", "a: &a {<<: *a}", "a: &a [*a]", "? [a]\n: b", "!!binary x", "!!int abc", "!foo bar",
		"apiVersion: v1\nkind: List\nitems:\n- &p\n  apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spec: {containers: [{name: c, image: i}]}\n- <<: *p\n  metadata: {name: b}\n",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"j"},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80.0}]}]}}`,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {on: 1}}\nspec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1e3, memory: .inf}}}]}",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {monopod.start-after: 'b, x/c', monopod.start-after-timeout: 9s}}\nspec: {containers: [{name: c, image: i}]}\n",
		podYAML("a", "terminationGracePeriodSeconds: 0644", "hostUsers: n", "securityContext: {sysctls: [{name: net.x, value: 1}]}"),
		podYAML("a", "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}", "tolerations: [{operator: Exists}]",
			"topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule}]"),
		containerYAML("env: [{name: A, value: '$(B)', valueFrom: {fieldRef: {fieldPath: \"metadata.labels['a']\"}}}], resources: {limits: {cpu: 1e3, memory: 1.5Gi}}"),
	} {
		f.Add([]byte(text))
	}
}

// FuzzDecode: whatever is in a file, it is read in time and without a fall;
// each problem says where; what is accepted can be written down and read again.
func FuzzDecode(f *testing.F) {
	seedManifests(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		started := time.Now()
		pods, problems := Decode("/m/x.yaml", data, node1)
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		lines := lineCount(data)
		for _, p := range problems {
			if p.File != "/m/x.yaml" || p.Line < 1 || p.Line > lines || p.Column < 1 || p.Message == "" {
				t.Errorf("a problem of %d lines stands at %d:%d: %q", lines, p.Line, p.Column, p.Error())
			}
		}
		if len(pods) == 0 && len(problems) == 0 && !onlyEmptyLists(data) {
			t.Error("neither a pod nor a problem")
		}
		same, _ := Decode("/m/x.yaml", data, node1)
		for i, p := range pods {
			if p.Name == "" || p.UID == "" || p.Digest == "" || len(p.Spec.Containers) == 0 {
				t.Errorf("half a pod: %+v", p)
			}
			if same[i].Digest != p.Digest || same[i].UID != p.UID {
				t.Error("another digest for the same bytes")
			}
			again(t, p)
		}
	})
}

// lineCount returns how many lines a manifest has at most. YAML may be in UTF-16.
func lineCount(data []byte) int {
	text, units := string(data), make([]uint16, len(data)/2)
	for mark, order := range map[string]binary.ByteOrder{"\xff\xfe": binary.LittleEndian, "\xfe\xff": binary.BigEndian} {
		if strings.HasPrefix(text, mark) {
			for i := range units {
				units[i] = order.Uint16(data[2*i:])
			}
			text = string(utf16.Decode(units))
			break
		}
	}
	lines := 1
	for _, br := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		lines += strings.Count(text, br)
	}
	return lines
}

// onlyEmptyLists: a list without items is no problem.
func onlyEmptyLists(data []byte) bool { return strings.Contains(string(data), "List") }

// again writes an accepted pod down and reads it, twice: what was read first
// has its identity spelled out, so it is the second and the third that must be
// one.
func again(t *testing.T, p *Pod) {
	t.Helper()
	first := p
	var digests []string
	for range 2 {
		text, err := json.Marshal(p.Pod)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", p.Key(), err)
		}
		pods, problems := Decode("/m/x.yaml", text, Options{NodeName: node1.NodeName})
		if len(pods) != 1 {
			t.Fatalf("%s is not accepted again: %s\n%s", p.Key(), words(problems), text)
		}
		p = pods[0]
		digests = append(digests, p.Digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("%s has the digests %v", p.Key(), digests)
	}
	delete(first.Annotations, documents.AnnotationSeen)
	delete(p.Annotations, documents.AnnotationSeen)
	if !equality.Semantic.DeepEqual(first.ObjectMeta, p.ObjectMeta) || !equality.Semantic.DeepEqual(first.Spec, p.Spec) {
		a, _ := json.Marshal(first.Pod)
		b, _ := json.Marshal(p.Pod)
		t.Errorf("it became another:\n%s\n%s", a, b)
	}
}

// goldenManifests returns the manifests of a recording.
func goldenManifests(t testing.TB, path string) [][]byte {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]struct{ Manifest json.RawMessage }
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, c := range cases {
		out = append(out, c.Manifest)
	}
	return out
}
