package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Imports run downhill: each package may import only these of ours. Tests may
// import anything.
var mayImport = map[string][]string{
	".":                  {"agent", "agent/cli", "agent/config", "agent/once", "agent/status", "agent/stream", "manifests"},
	"agent":              {"agent/config", "agent/events", "agent/hook", "agent/image", "agent/logs", "agent/metrics", "agent/panics", "agent/probe", "agent/safefile", "agent/server", "agent/stats", "agent/status", "agent/volume", "cgroups", "cri", "manifests", "manifests/poduid"},
	"agent/cli":          {"agent/events", "agent/podlog", "agent/status", "agent/stream", "cri"},
	"agent/elide":        {},
	"agent/events":       {"agent/elide", "agent/status"},
	"agent/config":       {"manifests"},
	"agent/hook":         {},
	"agent/image":        {"agent/panics", "cri"},
	"agent/logs":         {"agent/panics", "agent/safefile"},
	"agent/podlog":       {"agent/safefile"},
	"agent/metrics":      {},
	"agent/once":         {"agent/podlog", "agent/safefile", "agent/status", "manifests"},
	"agent/probe":        {"agent/panics"},
	"agent/safefile":     {},
	"agent/server":       {"agent/elide", "agent/events", "agent/panics", "agent/podlog", "agent/status"},
	"agent/stats":        {"agent/safefile", "agent/status", "cri"},
	"agent/stream":       {},
	"agent/status":       {"agent/panics"},
	"agent/volume":       {"agent/safefile", "manifests"},
	"cgroups":            {"manifests/poduid"},
	"agent/panics":       {},
	"cgroups/cgrouptest": {"cgroups"},
	"cri":                {},
	"manifests":          {"manifests/decode", "manifests/defaults", "manifests/validate"},
	"manifests/decode":   {},
	"manifests/defaults": {},
	"manifests/validate": {"manifests/decode", "manifests/defaults", "manifests/poduid"},
	"manifests/poduid":   {},
	"cri/critest":        {"cri"},
	"agent/e2e":          {"agent/e2e/rig"},
	"agent/e2e/golden":   {},
	"agent/e2e/rig":      {},
}

func TestImportsRunDownhill(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		dir := path.Dir(filepath.ToSlash(file))
		allowed, known := mayImport[dir]
		if err != nil || !known || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		seen++
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if ours, ok := strings.CutPrefix(name, "monopod/"); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s", file, ours)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("only %d files were looked at", seen)
	}
}

// Templates call methods by name, which keeps the linker from leaving out what
// is never called: a fifth of the binary.
func TestNothingImportsTemplates(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "grpcnotrace", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "monopod/agent") {
		t.Fatalf("that is no list of what is linked: %q", out)
	}
	for _, name := range []string{"text/template", "html/template"} {
		if slices.Contains(deps, name) {
			t.Errorf("%s is linked; `go list -deps -f '{{.ImportPath}} {{.Imports}}'` says whose doing that is", name)
		}
	}
}
