package documents_test

import (
	"fmt"
	"strings"
	"testing"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
	"monopod/manifests/documents/documenttest"
)

// relative returns a pod with so many volumes of which each is worth a warning.
func relative(name string, volumes int, spec ...string) string {
	lines := append(spec, "volumes:")
	for k := range volumes {
		lines = append(lines, fmt.Sprintf("- {name: v%d, hostPath: {path: data}}", k))
	}
	return documenttest.PodYAML(name, lines...)
}

// However many warnings there are, they keep no pod from being read.
func TestWarningsRefuseNothing(t *testing.T) {
	many := strings.Builder{}
	for k := range 600 {
		many.WriteString("---\n" + relative(fmt.Sprintf("p%d", k), 1))
	}
	unknown := strings.Builder{}
	for k := range 60 {
		fmt.Fprintf(&unknown, "x%d: y\n  ", k)
	}
	for name, row := range map[string]struct {
		file           string
		pods, problems int
	}{
		"many pods with a warning each":    {many.String(), 600, 500},
		"many pods in a List":              {inList(many.String()), 600, 500},
		"a pod with many":                  {relative("p", 60), 1, decode.MaxProblems},
		"a pod with many unknown fields":   {documenttest.PodYAML("p", unknown.String()), 1, decode.MaxProblems},
		"a pod with many, and an error":    {relative("p", 60, "hostname: a!"), 0, decode.MaxProblems + 1},
		"many unknown fields and an error": {documenttest.PodYAML("p", unknown.String(), "hostname: 5"), 0, decode.MaxProblems + 1},
	} {
		o := documenttest.Node1
		o.Validation = "Warn"
		c := documents.Read("/m/x.yaml", []byte(row.file), o)
		if len(c.Pods) != row.pods || len(c.Problems) != row.problems || c.Unclear {
			t.Errorf("%s: %d pods, want %d; %d problems, want %d; unclear %v", name, len(c.Pods), row.pods, len(c.Problems), row.problems, c.Unclear)
		}
	}
}

// inList returns the documents of a file as the items of a List.
func inList(file string) string {
	list := strings.Builder{}
	list.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for _, document := range strings.Split(file, "---\n")[1:] {
		list.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(document), "\n", "\n  ") + "\n")
	}
	return list.String()
}
