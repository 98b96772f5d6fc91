package manifests

import (
	"fmt"
	"strings"
	"testing"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
	"monopod/manifests/documents/documenttest"
)

var (
	node1         = documenttest.Node1
	podYAML       = documenttest.PodYAML
	words         = documenttest.Words
	podNames      = documenttest.PodNames
	checkWords    = documenttest.CheckWords
	accepted      = documenttest.Accepted
	containerYAML = documenttest.ContainerYAML
	workloadYAML  = documenttest.WorkloadYAML
	numbered      = documenttest.Numbered
	allocated     = documenttest.Allocated
)

func TestDecode(t *testing.T) {
	tests := []struct {
		name     string
		file     string
		validate string
		pods     string // namespace/name, separated by blanks
		problems string // lines of words; each must begin so, and there are no others
	}{
		{name: "a pod", file: podYAML("web"), pods: "default/web-node1"},
		{name: "a namespace", file: "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: prod}\nspec: {containers: [{name: c, image: i}]}", pods: "prod/web-node1"},
		{name: "several documents", file: podYAML("a") + "---\n" + podYAML("b") + "--- # end\n\n", pods: "default/a-node1 default/b-node1"},
		{name: "windows line ends", file: strings.ReplaceAll(podYAML("a")+"---\n"+podYAML("b"), "\n", "\r\n"), pods: "default/a-node1 default/b-node1"},
		{name: "byte order mark", file: "\xef\xbb\xbf" + podYAML("a"), pods: "default/a-node1"},
		{name: "directive", file: "%YAML 1.1\n---\n" + podYAML("a"), pods: "default/a-node1"},
		{name: "json", file: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"j","annotations":{"a":"\ud83d\ude00"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`, pods: "default/j-node1"},
		{name: "json with tabs", file: "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"j\"},\n\t\"spec\": {\"contaners\": []}}",
			problems: "5:11 spec.contaners: unknown field \"contaners\": did you mean \"containers\"?"},
		{name: "pod list", file: "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n  spec: {containers: [{name: c, image: i}]}\n- metadata: {name: b}\n  spec: {containers: [{name: c}]}\n",
			pods: "default/a-node1", problems: "7:23 items[1].spec.containers[0].image: Required value"},
		{name: "one bad item beside others", file: "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n  spec: {priority: x, containers: [{name: c, image: i}]}\n- metadata: {name: b}\n  spec: {containers: [{name: c, image: i}]}\n" +
			"- metadata: {name: c}\n  spec: {hostPID: true, hostPID: true, containers: [{name: c, image: i}]}\n- null\n",
			pods: "default/b-node1", problems: "5:20 items[0].spec.priority: expected a number (int32), got a string (\"x\")\n9:25 items[2].spec.hostPID: duplicate field \"hostPID\"\n10:3 items[3]: expected a Pod, got nothing"},
		{name: "list in list", file: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}\n", pods: "default/a-node1"},
		{name: "empty list", file: "apiVersion: v1\nkind: PodList\nitems: []\n"},
		{name: "list without items", file: "apiVersion: v1\nkind: List\n", problems: "1:1 items: a list needs items"},
		{name: "items are no list", file: "apiVersion: v1\nkind: List\nitems: 3\n", problems: "3:8 items: expected a list, got a number (3)"},

		{name: "nothing", file: "", problems: "1:1 : the file is empty"},
		{name: "blanks", file: " \n\n", problems: "1:1 : the file is empty"},
		{name: "comments", file: "# nothing\n---\n# here\n", problems: "1:1 : the file is empty"},
		{name: "null", file: "null\n", problems: "1:1 : the file is empty"},
		{name: "text", file: "hello\n", problems: `1:1 : expected a Pod, got a string`},
		{name: "too large", file: podYAML("a") + strings.Repeat("#", decode.MaxSize), problems: "1:1 : larger than 10 MiB"},
		{name: "syntax", file: "apiVersion: v1\nkind: Pod\n  metadata: x\n", problems: "3:3 : not valid YAML: mapping values are not allowed"},
		{name: "tabs", file: "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: x\n", problems: "4:2 : not valid YAML: found character that cannot start any token (indent with spaces, not tabs)"},
		{name: "wrong indent late in a block", file: podYAML("a", "hostNetwork: true", "hostPID: true", " hostIPC: true", "priority: 1"), problems: "8:4 : not valid YAML"},
		{name: "key beside a list", file: podYAML("a", "volumes:", "- name: v", "- name: w", " emptyDir: {}"), problems: "9:4 : not valid YAML"},
		{name: "out of a block too far", file: podYAML("a") + " bad: x\n", problems: "9:2 : not valid YAML: did not find expected key"},
		{name: "unknown anchor", file: podYAML("a", "hostname: *host"), problems: "6:13 : not valid YAML: unknown anchor 'host' referenced"},
		{name: "control character", file: podYAML("a", "hostname: a\x01b"), problems: "6:14 : not valid YAML: control characters are not allowed"},
		{name: "a bad document beside good ones", file: podYAML("a") + "---\nkind: [\n---\n" + podYAML("b"), pods: "default/a-node1 default/b-node1", problems: "10:1 : not valid YAML: did not find expected node content"},
		{name: "kind missing", file: "apiVersion: v1\nmetadata: {name: x}\n", problems: `1:1 kind: the kind is missing: write "kind: Pod"`},
		{name: "apiVersion missing", file: "kind: Pod\nmetadata: {name: x}\n", problems: `1:1 apiVersion: the apiVersion is missing`},
		{name: "another kind", file: "apiVersion: v1\nkind: Node\n", problems: `2:7 kind: Node is not a static pod`},
		{name: "config map", file: "apiVersion: v1\nkind: ConfigMap\n", problems: `1:1 metadata.name: Required value`},
		{name: "secret", file: "apiVersion: v1\nkind: Secret\n", problems: `1:1 metadata.name: Required value`},
		{name: "name missing", file: "apiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}\nspec: {containers: [{name: c, image: i}]}\n", problems: `3:1 metadata.name: Required value: a static pod needs a name`},
		{name: "twice in a file", file: podYAML("a") + "---\n" + podYAML("a"), pods: "default/a-node1", problems: "13:9 metadata.name: default/a-node1 is given twice: line 1"},

		{name: "unknown field", file: podYAML("a", "hostNetwrk: true"), problems: `6:3 spec.hostNetwrk: unknown field "hostNetwrk": did you mean "hostNetwork"?`},
		{name: "a misspelt required field is missing all the same where unknown fields pass", validate: "Ignore", file: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  contaners: []\n", problems: "4:1 spec.containers: Required value: a pod needs at least one container"},
		{name: "unknown field, other case", file: podYAML("a", "hostnetwork: true"), problems: `6:3 spec.hostnetwork: unknown field "hostnetwork": did you mean "hostNetwork"?`},
		{name: "unknown field, nothing near", file: podYAML("a", "zzzzzzzzzz: true"), problems: "6:3 spec.zzzzzzzzzz: unknown field \"zzzzzzzzzz\""},
		{name: "unknown field, warned of", validate: "Warn", file: podYAML("a", "zzzzzzzzzz: true"), pods: "default/a-node1", problems: "~6:3 spec.zzzzzzzzzz: unknown field"},
		{name: "unknown field, ignored", validate: "Ignore", file: podYAML("a", "zzzzzzzzzz: true"), pods: "default/a-node1"},
		{name: "duplicate field", file: podYAML("a", "hostNetwork: true", "hostNetwork: false"), problems: `7:3 spec.hostNetwork: duplicate field "hostNetwork": it stands on line 6 already`},
		{name: "duplicate field, warned of", validate: "Warn", file: podYAML("a", "hostNetwork: true", "hostNetwork: false"), pods: "default/a-node1", problems: `~7:3 spec.hostNetwork: duplicate`},
		{name: "a field three times", file: podYAML("a", "hostPID: true", "hostPID: false", "hostPID: true"),
			problems: "7:3 spec.hostPID: duplicate field \"hostPID\": it stands on line 6 already\n8:3 spec.hostPID: duplicate field \"hostPID\": it stands on line 7 already"},
		{name: "unknown fields with dots and in lists", file: podYAML("a", "containers.x: 1", "securityContext: {sysctls: [{name: kernel.sem, value: '1', 'a[0].b': c}]}"),
			problems: "6:3 spec.containers.x: unknown field \"containers.x\": did you mean \"containers\"?\n7:62 spec.securityContext.sysctls[0].a[0].b: unknown field \"a[0].b\""},
		{name: "all at once", file: podYAML("a", "restartPolicy: Sometimes", "hostNetwork: maybe", "priority: high", "foo: bar"),
			problems: "6:18 spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\"\n" +
				"7:16 spec.hostNetwork: expected true or false, got a string (\"maybe\")\n" +
				"8:13 spec.priority: expected a number (int32), got a string (\"high\")\n" +
				"9:3 spec.foo: unknown field \"foo\""},
		{name: "second document counts from the file's start", file: podYAML("a") + "---\n" + podYAML("b", "hostNetwork: 1"), pods: "default/a-node1", problems: "15:16 spec.hostNetwork: expected true or false, got a number (1)"},

		{name: "number for a string", file: podYAML("a", "hostname: 8080"), problems: `6:13 spec.hostname: expected a string, got a number (8080): put it in quotes, "8080"`},
		{name: "boolean for a string", file: podYAML("a", "hostname: on"), problems: `6:13 spec.hostname: expected a string, got a boolean (on): put it in quotes, "on"`},
		{name: "time for a string", file: podYAML("a", "schedulerName: 2001-02-03"), pods: "default/a-node1"},
		{name: "yaml 1.1 booleans", file: podYAML("a", "hostNetwork: off", "hostPID: N", "hostIPC: No"), pods: "default/a-node1"},
		{name: "too large a number", file: podYAML("a", "priority: 3000000000"), problems: "6:13 spec.priority: expected a number (int32), 3000000000 is too large or not whole"},
		{name: "half a number", file: podYAML("a", "priority: 1.5"), problems: "6:13 spec.priority: expected a number (int32), 1.5 is too large or not whole"},
		{name: "list for an object", file: podYAML("a", "securityContext: [x]"), problems: "6:3 spec.securityContext: expected an object, got a list"},
		{name: "object for a list", file: podYAML("a", "volumes: {name: v}"), problems: "6:3 spec.volumes: expected a list, got an object"},
		{name: "bad quantity", file: podYAML("a", "overhead:", "  cpu: lots"), problems: `7:10 spec.overhead[cpu]: expected a quantity such as 500m, 2 or 1Gi, got a string ("lots")`},
		{name: "bad time", file: "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  creationTimestamp: soon\nspec: {containers: [{name: c, image: i}]}", problems: `5:22 metadata.creationTimestamp: expected a time such as`},
		{name: "null leaves unset", file: podYAML("a", "volumes:", "hostname: null", "securityContext: ~"), pods: "default/a-node1"},
		{name: "key that is a list", file: podYAML("a", "? [x]", ": y"), problems: "6:5 spec: the key must be a string, got a list"},
		{name: "managed fields", file: "apiVersion: v1\nkind: Pod\nmetadata: {name: a, managedFields: [{fieldsV1: {\"f:x\": {}}}], creationTimestamp: null}\nspec: {containers: [{name: c, image: i}]}\nstatus: {phase: Running}", pods: "default/a-node1"},

		{name: "merge key", file: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - &base {name: c, image: i}\n  - <<: *base\n    name: d\n", pods: "default/a-node1"},
		{name: "merge key behind a field that it has too", file: podYAML("a", "hostPID: true", "<<: {hostPID: false}"), problems: "6:12 spec.hostPID: can be read in two ways, as a boolean (true) and, by the kubelet (YAML 1.1), as false: write << before all other fields"},
		{name: "merge of many", file: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - &x {name: c, image: i}\n  - <<: [*x, {name: e}]\n    name: d\n", pods: "default/a-node1"},
		{name: "merge of a string", file: podYAML("a", "<<: x"), problems: `6:7 spec: << merges objects, got a string ("x")`},
		{name: "alias of itself", file: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: &s\n  affinity: *s\n  containers: [{name: c, image: i}]\n", problems: "5:13 : *s stands inside what it stands for: an alias cannot hold itself"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := node1
			o.Validation = tt.validate
			pods, problems := Decode("/m/x.yaml", []byte(tt.file), o)
			if got := podNames(pods); got != tt.pods {
				t.Errorf("pods %q, want %q", got, tt.pods)
			}
			checkWords(t, problems, tt.problems)
		})
	}
}

func TestDecodeNamesPodAndFile(t *testing.T) {
	_, problems := Decode("/m/x.yaml", []byte(podYAML("web", "hostNetwork: maybe")), node1)
	if len(problems) != 1 {
		t.Fatalf("problems %v", problems)
	}
	want := `/m/x.yaml:6:16: spec.hostNetwork: expected true or false, got a string ("maybe")`
	if p := problems[0]; p.Pod != "default/web-node1" || p.Error() != want {
		t.Errorf("%s: %s", p.Pod, p.Error())
	}
}

// Its last good version runs on.
func TestAPodThatIsReadInTwoWaysIsKnownAndRefused(t *testing.T) {
	c := documents.Read("/m/x.yaml", []byte(podYAML("web", "hostPID: true", "<<: {hostPID: false}")), node1)
	if len(c.Refused) != 1 || c.Refused[0].String() != "default/web-node1" || c.Unclear || len(c.Pods) > 0 {
		t.Errorf("refused %v, unclear %v, pods %v", c.Refused, c.Unclear, c.Pods)
	}
	if len(c.Problems) != 1 || c.Problems[0].Pod != "default/web-node1" {
		t.Errorf("problems %v", c.Problems)
	}
}

// TestDecodeHostile wants an answer at a bounded cost, whatever the file.
func TestDecodeHostile(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	mergeBomb := "a: &a {x: y}\n"
	for c := 'b'; c < 'l'; c++ {
		mergeBomb += fmt.Sprintf("%c: &%c {<<: [%s]}\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	listBomb := "apiVersion: v1\nkind: List\nitems: &i\n- {apiVersion: v1, kind: List, items: *i}\n- {apiVersion: v1, kind: List, items: *i}\n"
	head := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
	tests := map[string]string{
		"aliases":            head + bomb + "spec: {containers: *k}\n",
		"merges":             head + mergeBomb + "spec: *k\n",
		"merge of itself":    head + "spec: &s\n  <<: *s\n",
		"lists":              listBomb,
		"managed bomb":       head + bomb + "metadata: {name: a, managedFields: [{fieldsV1: *k}]}\n",
		"deep flow":          strings.Repeat("[", 100_000),
		"deep flow closed":   head + "spec: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"deep json":          `{"kind":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}",
		"deep blocks":        strings.Repeat("- ", 100_000),
		"many problems":      head + "spec:\n" + strings.Repeat("  x: y\n", 100_000),
		"many comments":      strings.Repeat("#\n", 200_000) + head,
		"many documents":     strings.Repeat("---\na: b\n", 1_000_000),
		"long line":          head + "spec: {a: " + strings.Repeat("x", 1<<20) + "}",
		"binary":             "\x00\xff\xfe\x01",
		"utf-16":             "\xff\xfek\x00i\x00n\x00d\x00",
		"question marks":     strings.Repeat("? ", 100_000),
		"anchors undeclared": head + "spec: *nothing\n",
	}
	for name, file := range tests {
		t.Run(name, func(t *testing.T) {
			var problems []decode.Problem
			if n := allocated(func() { _, problems = Decode("/m/x.yaml", []byte(file), node1) }); n > 100<<20 {
				t.Errorf("%d MiB allocated", n>>20)
			}
			if len(problems) == 0 {
				t.Error("no problem")
			}
			for _, p := range problems {
				if p.Line < 1 || p.Column < 1 {
					t.Fatalf("no place: %+v", p)
				}
			}
		})
	}
}

func TestDecodeSpeed(t *testing.T) {
	file := []byte(podYAML("web", "hostNetwork: true", "dnsConfig: {nameservers: [10.0.0.1]}"))
	if n := testing.AllocsPerRun(20, func() { Decode("/m/x.yaml", file, node1) }); n > 3000 {
		t.Errorf("%v allocations for a small pod", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	file := []byte(podYAML("web", "hostNetwork: true", "dnsConfig: {nameservers: [10.0.0.1]}"))
	b.ReportAllocs()
	for b.Loop() {
		Decode("/m/x.yaml", file, node1)
	}
}
