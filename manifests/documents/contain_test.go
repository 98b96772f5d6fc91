package documents

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"monopod/manifests/decode"
)

func TestAPanicOverADocumentIsAProblemOfItsFile(t *testing.T) {
	f := &fileDecoder{file: "/m/a.yaml", options: Options{NodeName: "Node1", NameSuffix: true}}
	f.contained(decode.Document{Root: &yaml.Node{Kind: yaml.MappingNode, Line: 3, Column: 1, Content: []*yaml.Node{nil, nil}}, Line: 4})
	if len(f.Problems) != 1 || !f.Unclear || len(f.Faults) != 1 {
		t.Fatalf("problems %v, unclear %v, faults %v", f.Problems, f.Unclear, f.Faults)
	}
	if got := f.Problems[0].Error(); !strings.HasPrefix(got, "/m/a.yaml:7:1: monopod itself went wrong over this document, please report it") {
		t.Errorf("it is said as %q", got)
	}
	if !strings.Contains(f.Faults[0], "documents.(*fileDecoder).document") {
		t.Errorf("the stack is %s", f.Faults[0])
	}
}
