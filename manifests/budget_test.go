package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"monopod/manifests/decode"
)

const podHead = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"

// fill repeats a text up to a size.
func repeated(text string, size int) string { return strings.Repeat(text, size/len(text)) }

func TestBombsAreRefusedAtLittleCost(t *testing.T) {
	const two = 2<<20 - 1<<10 // a document that is just not too large
	tests := []struct {
		name, file string
		most       uint64 // MiB allocated
		problem    string // as words has it; no other problem
	}{
		{"a document of 2 MiB", podHead + "# " + repeated("x", 2<<20), 3, "1:1 : larger than 2 MiB"},
		{"a flat list", podHead + "spec: [" + repeated("x,", two) + "]", 100, "4:200148 : the document holds more than 100000 values: put its pods into several documents or files"},
		{"a list in lines", podHead + "spec:\n" + repeated("-\n", two), 100, "200"},
		{"keys in lines", podHead + "spec:\n" + repeated("a:\n", two), 100, "66"},
		{"keys without values", podHead + "spec: {" + repeated("?,", two) + "}", 100, "4:200"},
		{"comments", podHead + "spec:\n" + repeated("- #\n", two), 300, "200"},
		{"json list", `{"apiVersion":"v1","kind":"Pod","spec":[` + repeated("1,", two) + "1]}", 100, "1:2"},
		{"json objects", `{"apiVersion":"v1","kind":"Pod","spec":[` + repeated("{},", two) + "1]}", 130, "1:2"},
		{"flat lists in several documents", repeated("---\nx: ["+repeated("x,", two)+"]\n", 9<<20), 400, ""},
		{"nested flow", podHead + "spec: " + strings.Repeat("[", 101) + strings.Repeat("]", 101), 1, "4:107 : nested deeper than 100 levels"},
		{"nested through aliases", podHead + "a: &a " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\nb: &b " +
			strings.Repeat("[", 60) + "*a" + strings.Repeat("]", 60), 1, "5:67 : nested deeper than 100 levels"},
		{"merge keys", podHead + "k: &k {" + numbered("k%d: ,", 10_000) + "}\nspec:\n" + repeated("  <<: *k\n", 300<<10), 100,
			"9:7 : the aliases stand for more than 100000 values"},
		{"aliases", podHead + "k: &k [" + numbered("k%d,", 1000) + "]\nspec: [" + repeated("*k,", 1000) + "]", 4,
			"5:302 : the aliases stand for more than 100000 values"},
		{"aliases of a long text", podHead + "k: &k " + repeated("x", 1<<20) + "\nspec: [" + repeated("*k,", 1000) + "]", 20,
			"5:14 : the aliases stand for more than 2 MiB of text"},
		{"an alias inside itself", podHead + "spec: &s\n  affinity: *s\n", 1, "5:13 : *s stands inside what it stands for"},
		{"many empty documents", repeated("--- ~\n", 9<<20), 100, "5001:5 : more than 5000 documents"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var pods []*Pod
			var problems []decode.Problem
			spent := allocated(func() { pods, problems = Decode("/m/x.yaml", []byte(tt.file), node1) }) >> 20
			if spent > tt.most {
				t.Errorf("%d MiB were allocated, more than %d", spent, tt.most)
			}
			if len(pods) > 0 || len(problems) == 0 {
				t.Fatalf("pods %q, %d problems", podNames(pods), len(problems))
			}
			if tt.problem != "" {
				checkWords(t, problems, tt.problem)
			}
		})
	}
}

func TestMuchThatIsWrongIsSaidAtLittleCost(t *testing.T) {
	var file strings.Builder
	file.WriteString("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: i}]}\nmetadata:\n  name: a\n  labels:\n")
	file.WriteString(numbered("    a%d!: x\n", 40_000))
	_, problems := Decode("/m/x.yaml", []byte(file.String()), node1)
	if len(problems) != decode.MaxProblems {
		t.Errorf("%d problems, want %d", len(problems), decode.MaxProblems)
	}
}

func TestManyUnknownFieldsCostLittle(t *testing.T) {
	for _, validation := range []string{"Strict", "Warn", "Ignore"} {
		o := node1
		o.Validation = validation
		file := []byte(podHead + "spec:\n" + numbered("  x%d: y\n", 40_000) + "  containers: [{name: c, image: i}]\n")
		if spent := allocated(func() { Decode("/m/x.yaml", file, o) }) >> 20; spent > 130 {
			t.Errorf("%s: %d MiB were allocated", validation, spent)
		}
	}
}

func TestProblemsAreShort(t *testing.T) {
	file := "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {x: &l " + repeated("x ", 1<<20) + ", y: *l}}\nspec: {containers: [{name: c, image: i}]}\n"
	_, problems := Decode("/m/x.yaml", []byte(file), node1)
	if len(problems) == 0 {
		t.Fatal("no problem")
	}
	for _, p := range problems {
		if len(p.Error()) > 2000 {
			t.Errorf("a problem of %d bytes", len(p.Error()))
		}
	}
}

func TestManyGoodPodsInAFileAreRead(t *testing.T) {
	var file strings.Builder
	for i := range 1000 {
		file.WriteString("---\n" + podYAML(fmt.Sprintf("p%d", i), "hostNetwork: true", "dnsConfig: {nameservers: [10.0.0.1]}"))
	}
	pods, problems := Decode("/m/x.yaml", []byte(file.String()), node1)
	if len(pods) != 1000 || len(problems) != 0 {
		t.Errorf("%d pods, problems:\n%s", len(pods), words(problems))
	}
}

func TestALongTextIsNotCountedAsValues(t *testing.T) {
	script := "args:\n    - |\n" + repeated("      [a, b, c]: {d: e, f: [g]}\n", 1<<20)
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  volumes: []\n  containers:\n  - name: c\n    image: i\n    " + script
	_, problems := Decode("/m/x.yaml", []byte(text), node1)
	for _, p := range problems {
		if strings.Contains(p.Message, "values") {
			t.Errorf("%s", p)
		}
	}
}

// The file's neighbours come through, whatever it is.
func TestOneBadFileDelaysNoOther(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mkfifo(filepath.Join(dir, "a.yaml"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "b.yaml"), nil, 0o644))
	must(t, os.Truncate(filepath.Join(dir, "b.yaml"), 1<<40))
	bomb := podHead + "k: &k {" + numbered("k%d: ,", 10_000) + "}\nspec:\n" + repeated("  <<: *k\n", 300<<10)
	must(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(bomb), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "d.yaml"), []byte(podYAML("d")), 0o644))
	var got Snapshot
	spent := allocated(func() {
		f := watchFolder(t, dir, nil)
		for len(f.last.Pods) == 0 || len(f.last.Files) < 3 {
			got = f.next()
		}
	}) >> 20
	if spent > 150 {
		t.Errorf("%d MiB were allocated", spent)
	}
	said := map[string]string{}
	for _, f := range got.Files {
		for _, p := range f.Problems {
			said[filepath.Base(f.Path)] += p.Message
		}
	}
	if len(said) != 2 || !strings.Contains(said["b.yaml"], "larger than 10 MiB") || !strings.Contains(said["c.yaml"], "aliases stand for") {
		t.Errorf("problems %q", said)
	}
	if got := podNames(got.Pods); got != "default/d-node1" {
		t.Errorf("pods %q", got)
	}
}
