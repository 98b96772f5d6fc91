package agent

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The house of the project: what each package may import of ours. What stands
// above may import what stands below it in its own list; leaves import no other
// room of the agent's, but for the few named here.
var (
	// spine, from the bottom up: each imports those before it.
	spine = []string{"podspec", "update", "checkpoint", "rollback", "hold", "pleg", "node", "podhosts", "instance", "admission", "plan", "shutdown", "podstatus", "overview", "gc", "podevents", "fetch", "inplace", "worker"}
	// leaves, of which the spine may import any.
	leaves = map[string][]string{
		"desired": {"manifests"}, "config": {"agent/window", "manifests", "manifests/decode"},
		"events": {"agent/elide", "agent/statefile", "agent/status"}, "elide": {}, "hook": {}, "objects": {"manifests", "manifests/documents"}, "outcome": {"agent/objects", "agent/status", "manifests"}, "image": {"agent/panics", "agent/runtimewords", "agent/safefile", "agent/saidonce", "agent/statefile", "cri"},
		"logs": {"agent/panics", "agent/safefile", "agent/saidonce"}, "cnicache": {"agent/safefile"}, "metrics": {}, "notify": {"agent/status"}, "panics": {}, "podlog": {"agent/safefile"},
		"probe": {"agent/panics"}, "runtimewords": {}, "safefile": {}, "saidonce": {}, "statefile": {"agent/safefile"},
		"server": {"agent/elide", "agent/events", "agent/panics", "agent/podlog", "agent/safefile", "agent/saidonce", "agent/status"},
		"slots":  {}, "window": {}, "stats": {"agent/safefile", "agent/status", "cri"}, "status": {"agent/panics", "agent/safefile", "agent/statefile", "manifests/decode"}, "stream": {"agent/runtimewords"},
		"volume": {"agent/safefile", "manifests", "manifests/decode"},
	}
	below = []string{"cgroups", "cri", "manifests", "manifests/decode", "manifests/defaults", "manifests/poduid"}
	// notAbove are those that do not see each other though both are in the spine.
	notAbove = map[string][]string{"node": {"pleg"}, "plan": {"admission"}, "gc": {"admission", "podstatus"}, "fetch": {"gc"}, "worker": {"gc"}}
	others   = map[string][]string{
		".": {"agent/cli", "agent/cli/command"},
		"agent/cli": {"agent", "agent/checkpoint", "agent/cli/check", "agent/cli/client", "agent/cli/command", "agent/cli/diff", "agent/cli/hold", "agent/cli/logs", "agent/cli/print", "agent/cli/terminal", "agent/cli/wait", "agent/config", "agent/doctor",
			"agent/objects", "agent/once", "agent/settings", "agent/status", "agent/stream", "agent/volume", "cri", "manifests", "manifests/decode", "manifests/defaults"},
		"agent/cli/check":     {"agent/cli/print", "agent/config", "agent/objects", "agent/status", "manifests", "manifests/defaults", "manifests/documents"},
		"agent/cli/client":    {"agent/cli/print", "agent/events", "agent/hold", "agent/status", "cri", "manifests/decode"},
		"agent/cli/clitest":   {"agent/server", "agent/status"},
		"agent/cli/command":   {"agent/cli/client", "agent/cli/print", "agent/status", "manifests/decode"},
		"agent/cli/diff":      {"agent/cli/client", "agent/cli/print", "agent/config", "agent/status", "agent/update", "agent/window", "manifests"},
		"agent/cli/hold":      {"agent/cli/client", "agent/cli/command"},
		"agent/cli/logs":      {"agent/cli/client", "agent/cli/print", "agent/podlog", "manifests/defaults"},
		"agent/cli/print":     {"agent/status", "manifests/defaults"},
		"agent/cli/terminal":  {"agent/stream"},
		"agent/doctor":        {"agent/checkpoint", "agent/cli/print", "agent/config", "cri"},
		"agent/cli/wait":      {"agent/cli/client", "agent/cli/print", "agent/status", "manifests"},
		"agent/once":          {"agent/cli/print", "agent/podlog", "agent/runtimewords", "agent/safefile", "agent/status", "agent/volume", "manifests", "manifests/decode", "manifests/defaults"},
		"cgroups":             {"manifests/poduid"},
		"cgroups/cgrouptest":  {"cgroups"},
		"cri":                 {},
		"cri/critest":         {"cri"},
		"manifests":           {"manifests/decode", "manifests/documents"},
		"manifests/documents": {"manifests/decode", "manifests/defaults", "manifests/validate", "manifests/workload"},
		"manifests/decode":    {},
		"manifests/fetch":     {"manifests", "manifests/decode"},
		"manifests/defaults":  {},
		"manifests/poduid":    {},
		"manifests/validate":  {"manifests/decode", "manifests/defaults", "manifests/poduid"},
		"manifests/workload":  {"manifests/decode"},
		"agent/e2e":           {"agent/e2e/rig"},
		"agent/e2e/golden":    {},
		"agent/e2e/rig":       {},
	}
)

// mayImport is all of this as one table.
func mayImport() map[string][]string {
	may := maps.Clone(others)
	all := slices.Clone(below)
	for name, imports := range leaves {
		may["agent/"+name] = imports
		if name != "config" { // whose values the wiring copies
			all = append(all, "agent/"+name)
		}
	}
	for k, name := range spine {
		imports := slices.Clone(all)
		for _, lower := range spine[:k] {
			if !slices.Contains(notAbove[name], lower) {
				imports = append(imports, "agent/"+lower)
			}
		}
		may["agent/"+name] = imports
	}
	for _, name := range spine {
		all = append(all, "agent/"+name)
	}
	may["agent/settings"] = slices.Concat(all, []string{"agent/config", "manifests/fetch"})
	may["agent/reload"] = slices.Concat(all, []string{"agent/config", "agent/settings"})
	may["agent"] = append(all, "agent/config", "agent/reload", "agent/settings", "manifests/fetch")
	return may
}

// Imports run downhill. Tests may import anything.
func TestImportsRunDownhill(t *testing.T) {
	may, seen := mayImport(), map[string]bool{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		dir, err := filepath.Rel("..", path.Dir(filepath.ToSlash(file)))
		if err != nil {
			return err
		}
		allowed, known := may[dir]
		if !known {
			if !strings.HasPrefix(dir, "testdata/") && !strings.HasPrefix(dir, "agent/e2e/") {
				t.Errorf("%s is a package that is not in the house", dir)
			}
			return nil
		}
		seen[dir] = true
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
	for dir := range may {
		if !seen[dir] {
			t.Errorf("%s is in the house and does not exist", dir)
		}
	}
}

// main.go is the only Go file of the root.
func TestTheRootHasOneGoFile(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "main.go" {
		t.Errorf("the root has %v (%v)", files, err)
	}
}

// maxRoom is how many lines a package may have without its tests.
const maxRoom = 2500

func TestRoomsAreSmall(t *testing.T) {
	lines := map[string]int{}
	for dir := range mayImport() {
		files, _ := filepath.Glob(filepath.Join("..", dir, "*.go"))
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines[dir] += strings.Count(string(b), "\n")
		}
	}
	for dir, n := range lines {
		if n > maxRoom {
			t.Errorf("%s has %d lines: at most %d", dir, n, maxRoom)
		}
	}
}

// maxRelease is how many bytes the release may have. Templates, of which help is
// made, call methods by name: the linker keeps those that are never called, too.
const maxRelease = 30_000_000

// The release is built as make builds it.
func TestTheReleaseIsSmall(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^RELEASE +:= (.+)$`).FindSubmatch(makefile)
	if command == nil {
		t.Fatal("the Makefile does not say how the release is built")
	}
	bin := filepath.Join(t.TempDir(), "monopod")
	build := exec.CommandContext(t.Context(), "sh", "-c", string(command[1])+` -o "$0" .`, bin)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxRelease {
		t.Errorf("the release has %.1f MB: at most %.1f", float64(info.Size())/1e6, maxRelease/1e6)
	}
}
