package decode

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
)

// said returns what the documents of a file say, as JSON, and what is wrong with them.
func said(text string) (values, wrong string) {
	for d := range Documents([]byte(text)) {
		if d.Err.Message != "" {
			wrong += fmt.Sprintf("%d:%d %s: %s|", d.Err.Line, d.Err.Column, d.Err.Field, d.Err.Message)
			continue
		}
		b, _ := json.Marshal(d.says.value)
		values += string(b)
	}
	return values, wrong
}

func TestValuesAreThoseOfTheKubelet(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"[y, Yes, ON, n, off, true]", `[true,true,true,false,false,true]`},
		{`["on", 'no', !!str off, ! 12]`, `["on","no","off","12"]`},
		{"[0644, 0o17, 0x1F, 0b11, +1, 1_000, -0]", `[420,15,31,3,1,1000,0]`},
		{"[1.0, 1e3, 1.5, .5, 1e400]", `[1,1000,1.5,0.5,"1e400"]`},
		{"[12345678901234567890, 123456789012345678901234567890]", `[12345678901234567890,1.2345678901234568e+29]`},
		{"[1:30, 2001-02-03, 2001-02-03T04:05:06Z]", `["1:30","2001-02-03","2001-02-03T04:05:06Z"]`},
		{"[~, null, '~']\n", `[null,null,"~"]`},
		{"[!!binary aGk=, !own x, !!float 1]", `["hi","x",1]`},
		{"{on: a, 1: b, 1.5: c, 0x10: d, ~x: e}", `{"1":"b","1.5":"c","16":"d","true":"a","~x":"e"}`},
		{"{&k a: 1, *k : 2}", `{"a":2}`},
		{"a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\ne: {<<: [{c: 4}, *x]}", `{"a":{"b":1,"c":2},"d":{"b":1,"c":3},"e":{"b":1,"c":4}}`},
		{"a:\tb", `{"a":"b"}`},
		{`{"a": 80.0, "b": "\ud83d\ude00\/\u0007", "c": "` + "\x7f\u0085\u2028" + `"}`, `{"a":80,"b":"😀/\u0007","c":"` + "\x7f\u0085" + `\u2028"}`},
		{"\xff\xfea\x00:\x00 \x00b\x00\n\x00", `{"a":"b"}`},
		{"# one\n---\n# two\na: 1\n...\n---\n--- # three\nb: 2\n", `{"a":1}{"b":2}`},
	} {
		if got, wrong := said(row.text); got != row.want || wrong != "" {
			t.Errorf("%s\nsays %s %s\nwant %s", row.text, got, wrong, row.want)
		}
	}
}

func TestWhatIsReadInTwoWaysIsRefused(t *testing.T) {
	const remedy = ": write << before all other fields of its object, put keys and strings in quotes, and end lines with \\n|"
	for _, row := range []struct{ text, want string }{
		{"a:\n  b: x\n  <<: {b: z}\n", `2:6 a.b: can be read in two ways, as a string ("x") and, by the kubelet (YAML 1.1), as "z"` + remedy},
		{"a: 1\n'on': 1\non: 2\n", `1:1 : can be read in two ways, as an object of 3 fields and, by the kubelet (YAML 1.1), as one of 4` + remedy},
		{"a: [{1e300: x}]\n", `1:6 a[0]: can be read in two ways, as the key "1e+300" and, by the kubelet (YAML 1.1), as another` + remedy},
		{"a: b\r---\rc: d\r", `2:1 : a second document begins without a line of its own: end lines with \n|`},
		{"a: [.inf]\n", `1:5 a[0]: put it in quotes, without a tag: json: unsupported value: +Inf|`},
		{"a: !!int abc\n", "1:4 a: put it in quotes, without a tag: yaml: cannot decode !!str `abc` as a !!int|"},
		{"a: {~: b}\n", `1:5 a: the key must be a string, got nothing|`},
		{"a: {? {b: c} : d}\n", `1:7 a: the key must be a string, got an object|`},
		{"a: {<<: [{}, x]}\n", `1:9 a: << merges objects, got a string ("x")|`},
		{"a: b\n99999999999999999999e: c\n18446744073709551615: x\n", `1:1 : the kubelet cannot read this: unsupported map key of type: uint64, key: 0xffffffffffffffff, value: "x"|`},
		{"a: [" + strings.Repeat("on, ", 1001) + "]\nb: [\n" + numbered("0x%04x,\n", 1000) + "]\n", `1002:1 b[999]: more than 1000 scalars are spelled as only YAML 1.1 has them: spell them as in JSON|`},
	} {
		if got, wrong := said("kind: Pod\n---\n" + row.text + "kind: Pod\n"); got != `{"kind":"Pod"}` || wrong != shifted(row.want) {
			t.Errorf("%s\nsays %s\n%s\nwant:\n%s", row.text, got, wrong, shifted(row.want))
		}
	}
}

// shifted adds two to the line that a text begins with.
func shifted(text string) string {
	line, rest, _ := strings.Cut(text, ":")
	n, _ := strconv.Atoi(line)
	return fmt.Sprintf("%d:%s", n+2, rest)
}

// numbered writes a format with each number below n.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestJSONKeepsItsColumns(t *testing.T) {
	for _, text := range []string{
		`{"a":"\ud83d\ude00\/\/", "b":[1,{"c":!}]}`,
		`  {"\u00e9": "é", "b":[1,{"c":!}]}`,
		"{\"a\":\"\\ud83d\\ude00\",\n \"b\":[\"\\/\",{\"c\":!}]}",
	} {
		want := strings.Index(text, "!") - strings.LastIndex(text[:strings.Index(text, "!")], "\n") - strings.Count(text, "é")
		for d := range Documents([]byte(strings.ReplaceAll(text, "!", "7"))) {
			if d.Err.Message != "" {
				t.Fatal(d.Err)
			}
			if n := Find(d.Root, "b[1].c"); n.Column != want || n.Value != "7" {
				t.Errorf("%s: column %d, want %d", text, n.Column, want)
			}
		}
	}
}

// FuzzParsersAgree: where a document is read, the nodes say what the kubelet's parser
// says, and so does the other parser by itself but for scalars of YAML 1.1.
func FuzzParsersAgree(f *testing.F) {
	for _, text := range []string{
		"a: b", "{a: [1, {b: c}]}", "on: yes\n1.5: 0o17\n017: 1_000\n1:30: ~", "a: &a {b: c}\nd: {<<: *a, b: 2}\n<<: [*a]", "a: !!binary aGk=\nb: !x y", "a: !!binary aryL",
		"a: |\n  b\n  c\nd: >-\n  e\n\n  f\ng: 'h\n\n  i'\nj: \"k\\\n  l\"", "? a\n: - b\n  - ? c\n  - : d", `{"a":"\ud83d\ude00\/","b":80.0,"a":null}`,
		"spec: {priority: x, foo: 1, overhead: {cpu: lots}, containers: [{ports: [{containerPort: 80.0}]}, null]}",
		"\xef\xbb\xbfa: b", "a: b\r\nc: d\r\n", "a: b\u2028c: d", "[a:b, {c}, d: e]", "a: 2001-02-03\nb: .inf", "a: \"\\x41\\u0085\"", "- &x a\n- *x\n- {*x : y}", "n:\nN:\na:",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		defer func() {
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		}()
		for d := range Documents(data) {
			if d.Err.Message != "" {
				if d.Err.Line < 1 || d.Err.Column < 1 {
					t.Errorf("no place: %+v", d.Err)
				}
				continue
			}
			agree(t, d.Root, d.says.value)
			pod := &v1.Pod{}
			r := &Reader{}
			text, _ := json.Marshal(d.says.value)
			if r.Read(d.Object(), pod); len(r.Problems) == 0 && d.Root.Kind == yaml.MappingNode {
				plain := &v1.Pod{}
				if unknown, err := unmarshal(json.RawMessage(text), plain); err != nil || len(unknown) > 0 || !reflect.DeepEqual(pod, plain) {
					t.Errorf("the kubelet has %+v, %v, %v\nread is %+v", plain, unknown, err, pod)
				}
			}
		}
		var theirs any
		// An empty first document is one to the kubelet; here it is passed over.
		if len(data) < maxDocument && len(data) > 0 && data[0] != '{' && yaml.Unmarshal(data, &theirs) == nil && theirs != nil {
			for d := range Documents(data) {
				if d.Err.Message == "" {
					alike(t, theirs, d.says.value)
				}
				break
			}
		}
	})
}

// agree wants nodes to lead to all that was read, and to nothing else.
func agree(t *testing.T, n *yaml.Node, v any) {
	switch n = Follow(n); v := v.(type) {
	case map[string]any:
		if n.Kind != yaml.MappingNode || len(n.Content) != 2*len(v) {
			t.Errorf("%d nodes for %v", len(n.Content), v)
		}
		for name, inner := range v {
			if _, value := Lookup(n, name); value != nil {
				agree(t, value, inner)
			} else {
				t.Errorf("no node for %q", name)
			}
		}
	case []any:
		if n.Kind != yaml.SequenceNode || len(n.Content) != len(v) {
			t.Fatalf("%d nodes for %v", len(n.Content), v)
		}
		for i, inner := range v {
			agree(t, n.Content[i], inner)
		}
	case string:
		if n.Kind != yaml.ScalarNode || n.Value != v || n.ShortTag() != "!!str" {
			t.Errorf("%q is the %s %q", v, n.ShortTag(), n.Value)
		}
	default:
		if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!str" || (v == nil) != IsNull(n) {
			t.Errorf("%v is the %s %q", v, n.ShortTag(), n.Value)
		}
	}
}

// alike wants two readings to have the same form and the same strings.
func alike(t *testing.T, theirs, ours any) {
	switch theirs := theirs.(type) {
	case map[string]any:
		object, _ := ours.(map[string]any)
		others := 0 // of the names: on, 0x1 or the like, of which several may be one to the kubelet
		for name, inner := range theirs {
			value, ok := object[name]
			if ok {
				alike(t, inner, value)
			} else {
				others++
			}
		}
		if len(object) > len(theirs) || len(object) < len(theirs)-max(others-1, 0) {
			t.Fatalf("%v is %v", theirs, ours)
		}
	case []any:
		list, _ := ours.([]any)
		if len(list) != len(theirs) {
			t.Fatalf("%v is %v", theirs, ours)
		}
		for i, inner := range theirs {
			alike(t, inner, list[i])
		}
	case string:
		// Bytes that are no UTF-8, as !!binary may give, each become U+FFFD on the kubelet's way through JSON.
		if s, ok := ours.(string); ok && s != theirs && string([]rune(theirs)) != s {
			t.Errorf("%q is %q", theirs, s)
		}
	case nil:
		if _, tagged := ours.(string); ours != nil && !tagged { // ! ~ is a string to the kubelet
			t.Errorf("nothing is %v", ours)
		}
	}
}
