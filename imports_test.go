package main

import (
	"go/parser"
	"go/token"
	"io/fs"
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
	".":                  {"agent", "agent/cli", "agent/status", "manifests"},
	"agent":              {"agent/hook", "agent/image", "agent/logs", "agent/probe", "agent/server", "agent/status", "agent/volume", "cgroups", "cri", "manifests"},
	"agent/cli":          {"agent/status"},
	"agent/hook":         {},
	"agent/image":        {"cri"},
	"agent/logs":         {},
	"agent/podlog":       {},
	"agent/probe":        {},
	"agent/server":       {"agent/status"},
	"agent/status":       {},
	"agent/volume":       {"manifests"},
	"cgroups":            {},
	"cgroups/cgrouptest": {"cgroups"},
	"cri":                {},
	"manifests":          {},
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
