package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
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
	spine = []string{"podspec", "cpus", "devices", "update", "checkpoint", "hold", "pleg", "pinning", "node", "podhosts", "podresolv", "instance", "admission", "plan", "podevents", "podimages", "prepare", "shutdown", "podstatus", "rollout", "outlook", "overview", "gc", "inplace", "worker"}
	// tools import nothing of ours; all of the agent may import them.
	tools = []string{"agent/backoff", "agent/choice", "agent/wake"}
	// leaves, of which the spine may import any.
	leaves = map[string][]string{
		"archives":     {"agent/disk", "agent/panics", "agent/saidonce", "cri", "manifests", "manifests/imagename", "manifests/shell", "manifests/patient"},
		"clip":         {},
		"cnicache":     {"agent/disk"},
		"config":       {"agent/cpus", "agent/window", "manifests", "manifests/decode", "manifests/devicename", "manifests/shell", "manifests/signature"},
		"disk":         {},
		"events":       {"agent/disk", "agent/message"},
		"hook":         {"agent/clip", "manifests/defaults"},
		"image":        {"manifests/imagename", "agent/disk", "agent/panics", "agent/runtimewords", "agent/saidonce", "cri", "manifests/decode"},
		"managed":      {"agent/disk", "cri"},
		"logrotate":    {"agent/disk", "agent/panics", "agent/saidonce"},
		"metrics":      {},
		"notify":       {"agent/status"},
		"objects":      {"manifests", "manifests/annotations", "manifests/decode", "manifests/documents", "manifests/podfiles"},
		"oom":          {},
		"outcome":      {"agent/objects", "agent/status", "manifests", "manifests/poduid"},
		"panics":       {},
		"podlog":       {"agent/disk"},
		"podresources": {"agent/panics", "agent/socket"},
		"probe":        {"agent/clip", "agent/message", "agent/panics"},
		"runtimewords": {},
		"saidonce":     {},
		"server":       {"agent/disk", "agent/events", "agent/message", "agent/page", "agent/panics", "agent/podlog", "agent/saidonce", "agent/socket", "agent/status"},
		"slots":        {},
		"socket":       {"agent/saidonce"},
		"stats":        {"agent/disk", "agent/status", "cri"},
		"status":       {"agent/disk", "agent/message", "agent/panics", "agent/saidonce", "manifests/decode", "manifests/poduid"},
		"stream":       {"agent/runtimewords"},
		"volume":       {"agent/disk", "manifests", "manifests/decode", "manifests/podfiles", "manifests/shell"},
		"window":       {"agent/message"},
		"message":      {},
	}
	below = []string{"cgroups", "cri", "manifests", "manifests/annotations", "manifests/decode", "manifests/defaults", "manifests/devicename", "manifests/poduid", "manifests/shell"}
	// notAbove are those that do not see each other though both are in the spine.
	notAbove = map[string][]string{"node": {"pleg"}, "plan": {"admission"}, "gc": {"admission", "podstatus"}, "worker": {"gc"}}
	others   = map[string][]string{
		".": {"agent/cli", "agent/cli/command"},
		"agent/cli": {"agent", "agent/archives", "agent/choice", "agent/checkpoint", "agent/cli/check", "agent/cli/client", "agent/cli/command", "agent/cli/cp", "agent/cli/diff", "agent/cli/forward", "agent/cli/logs", "agent/cli/owner", "agent/cli/support", "agent/print", "agent/cli/terminal", "agent/cli/wait", "agent/config", "agent/disk", "agent/doctor",
			"agent/handover", "agent/hold", "agent/managed", "agent/message", "agent/node", "agent/objects", "agent/once", "agent/outlook", "agent/settings", "agent/status", "agent/stream", "agent/update", "agent/volume", "cgroups", "cri", "manifests", "manifests/annotations", "manifests/decode", "manifests/defaults", "manifests/fetch", "manifests/shell", "manifests/signature"},
		"agent/cli/check":      {"agent/print", "agent/config", "agent/objects", "agent/status", "manifests", "manifests/defaults", "manifests/documents"},
		"agent/cli/client":     {"agent/print", "agent/clip", "agent/events", "agent/hold", "agent/shutdown", "agent/status", "cri", "manifests", "manifests/annotations", "manifests/decode"},
		"agent/cli/clitest":    {"agent/server", "agent/status"},
		"agent/cli/command":    {"agent/choice", "agent/cli/client", "agent/print", "agent/config", "agent/status", "manifests/annotations", "manifests/decode"},
		"agent/cli/cp":         {"agent/print", "agent/disk", "agent/runtimewords", "agent/stream"},
		"agent/cli/forward":    {"agent/print", "agent/stream"},
		"agent/cli/diff":       {"agent/admission", "agent/checkpoint", "agent/cli/client", "agent/print", "agent/config", "agent/hold", "agent/outlook", "agent/plan", "agent/podstatus", "agent/rollout", "agent/status", "agent/update", "manifests"},
		"agent/cli/support":    {"agent/message", "manifests", "manifests/decode"},
		"agent/cli/owner":      {"agent/cli/client", "agent/cli/command"},
		"agent/cli/logs":       {"agent/cli/client", "agent/print", "agent/podlog", "manifests/defaults"},
		"agent/page":           {"agent/message", "agent/print", "agent/status", "manifests/defaults", "manifests/poduid"},
		"agent/print":          {"agent/events", "agent/message", "agent/podspec", "agent/status", "manifests/defaults"},
		"agent/cli/terminal":   {"agent/stream"},
		"agent/handover":       {"agent/checkpoint", "agent/disk", "agent/podspec", "agent/volume", "cgroups", "cri", "manifests", "manifests/poduid", "manifests/shell"},
		"agent/doctor":         {"agent/checkpoint", "agent/managed", "agent/print", "agent/config", "agent/message", "agent/podspec", "cri", "manifests", "manifests/layers", "manifests/shell"},
		"agent/cli/wait":       {"agent/cli/client", "agent/print", "agent/status", "manifests", "manifests/poduid"},
		"agent/once":           {"agent/wake", "agent/print", "agent/disk", "agent/podlog", "agent/runtimewords", "agent/status", "agent/volume", "manifests", "manifests/annotations", "manifests/decode", "manifests/defaults", "manifests/shell"},
		"cgroups":              {"manifests/poduid"},
		"cgroups/cgrouptest":   {"cgroups"},
		"cri":                  {},
		"cri/critest":          {"cri"},
		"manifests":            {"manifests/annotations", "manifests/decode", "manifests/documents", "manifests/patient", "manifests/poduid", "manifests/shell"},
		"manifests/documents":  {"manifests/annotations", "manifests/decode", "manifests/defaults", "manifests/poduid", "manifests/validate", "manifests/workload"},
		"manifests/decode":     {},
		"manifests/devicename": {},
		"manifests/fetch":      {"manifests", "manifests/annotations", "manifests/decode", "manifests/patient", "manifests/signature"},
		"manifests/signature":  {"manifests/annotations", "manifests/decode"},
		"manifests/layers":     {"manifests", "manifests/decode", "manifests/poduid"},
		"manifests/defaults":   {"manifests/imagename"},
		"manifests/patient":    {},
		"manifests/podfiles":   {},
		"manifests/poduid":     {},
		"manifests/imagename":  {},
		"manifests/validate":   {"manifests/imagename", "manifests/annotations", "manifests/decode", "manifests/defaults", "manifests/devicename", "manifests/podfiles", "manifests/poduid"},
		"manifests/shell":      {},
		"manifests/workload":   {"manifests/annotations", "manifests/decode"},
		"agent/e2e":            {"agent/e2e/rig"},
		"agent/e2e/golden":     {},
		"agent/e2e/rig":        {"agent/managed"},

		// What is said of pods in annotations is read by many, and reads nothing but YAML's places.
		"manifests/annotations": {"manifests/decode"},

		// What tests alone use.
		"agent/plan/plantest":              {"agent/checkpoint", "agent/plan", "agent/pleg", "agent/podspec", "manifests"},
		"manifests/documents/documenttest": {"manifests/decode", "manifests/documents"},
	}
)

// mayImport is all of this as one table.
func mayImport() map[string][]string {
	may := maps.Clone(others)
	all := slices.Concat(below, tools)
	for _, tool := range tools {
		may[tool] = nil
	}
	for name, imports := range leaves {
		may["agent/"+name] = slices.Concat(imports, tools)
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
	may["agent/settings"] = slices.Concat(all, []string{"agent/config", "manifests/fetch", "manifests/layers", "manifests/signature"})
	may["agent/reload"] = slices.Concat(all, []string{"agent/config", "agent/settings", "manifests/patient"})
	may["agent"] = append(all, "agent/config", "agent/reload", "agent/settings", "manifests/fetch", "manifests/layers", "manifests/patient")
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

// sources calls look for each Go file of the product, without tests.
func sources(t *testing.T, look func(file string, set *token.FileSet, f *ast.File)) {
	t.Helper()
	goFiles(t, func(file string, set *token.FileSet, f *ast.File) {
		if !strings.HasSuffix(file, "_test.go") {
			look(file, set, f)
		}
	})
}

// goFiles calls look for each Go file.
func goFiles(t *testing.T, look func(file string, set *token.FileSet, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(file, ".go") {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err == nil {
			look(file, set, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A statement stands on a line of its own: the init of an if makes the value that its
// condition asks about, and does nothing else.
func TestNoStatementHidesInAnIf(t *testing.T) {
	seen := 0
	sources(t, func(file string, set *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			s, is := n.(*ast.IfStmt)
			if !is || s.Init == nil {
				return true
			}
			seen++
			if !makesWhatIsAsked(s) {
				t.Errorf("%s: a statement hides in an if", set.Position(s.Pos()))
			}
			return true
		})
	})
	if seen < 1000 {
		t.Errorf("%d ifs have an init", seen)
	}
}

// makesWhatIsAsked reports whether the init of an if gives a value that its condition names.
func makesWhatIsAsked(s *ast.IfStmt) bool {
	asked := map[string]bool{}
	ast.Inspect(s.Cond, func(n ast.Node) bool {
		if e, is := n.(ast.Expr); is {
			asked[types.ExprString(e)] = true
		}
		return true
	})
	var made []ast.Expr
	switch init := s.Init.(type) {
	case *ast.AssignStmt:
		made = init.Lhs
	case *ast.IncDecStmt:
		made = []ast.Expr{init.X}
	}
	return slices.ContainsFunc(made, func(e ast.Expr) bool { return asked[types.ExprString(e)] })
}

// When a test's clean-up runs, the test's context has ended: who waits with it waits for
// nothing, and the folder of the test goes while it is still being written.
func TestNoCleanUpWaitsWithTheContextOfItsTest(t *testing.T) {
	seen := 0
	goFiles(t, func(file string, set *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || !strings.HasSuffix(types.ExprString(call.Fun), ".Cleanup") {
				return true
			}
			seen++
			ast.Inspect(call, func(n ast.Node) bool {
				inner, is := n.(*ast.CallExpr)
				if is && types.ExprString(inner) == "t.Context()" {
					t.Errorf("%s: the context of the test has ended when its clean-up runs", set.Position(inner.Pos()))
				}
				return true
			})
			return true
		})
	})
	if seen < 50 {
		t.Errorf("%d clean-ups", seen)
	}
}

// A room over a hundred lines has tests of its own.
func TestRoomsHaveTestsOfTheirOwn(t *testing.T) {
	lines := map[string]int{}
	sources(t, func(file string, set *token.FileSet, f *ast.File) {
		lines[filepath.Dir(file)] += set.Position(f.End()).Line
	})
	for dir, n := range lines {
		tests, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
		room, _ := filepath.Rel("..", dir)
		if n > 100 && len(tests) == 0 && !strings.HasPrefix(room, "agent/e2e/") && !strings.HasSuffix(room, "test") {
			t.Errorf("%s has %d lines and no tests of its own", room, n)
		}
	}
}

// maxRelease is how many bytes the release may have. Templates, of which help is
// made, call methods by name: the linker keeps those that are never called, too.
const maxRelease = 33_500_000

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

// The loop is told in one file.
func TestTheMethodsOfTheLoopStandInOneFile(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, isFunc := d.(*ast.FuncDecl)
			if !isFunc || fn.Recv == nil || types.ExprString(fn.Recv.List[0].Type) != "*syncLoop" {
				continue
			}
			found++
			if file != "sync.go" {
				t.Errorf("%s: (*syncLoop).%s belongs into sync.go", file, fn.Name.Name)
			}
		}
	}
	if found == 0 {
		t.Error("there is no loop")
	}
}
