package agent

import (
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pagesOfDocs are what people read of the project.
func pagesOfDocs(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("../docs/*.md")
	noErr(t, err)
	if len(docs) < 8 {
		t.Fatalf("the docs are %v", docs)
	}
	return append(docs, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md")
}

func pageText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	noErr(t, err)
	return string(text)
}

// anchors are what the headings of a page are called in links.
func anchors(text string) (all []string) {
	dropped := regexp.MustCompile("[^a-z0-9 -]")
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// Every link of the docs leads to a file that is there, and to a heading of it.
func TestTheLinksOfTheDocsLeadSomewhere(t *testing.T) {
	seen := 0
	for _, page := range pagesOfDocs(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(pageText(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			seen++
			name, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), name)
			if name == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if anchor != "" && !slices.Contains(anchors(pageText(t, target)), anchor) {
				t.Errorf("%s: %s has no heading %s", page, target, anchor)
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d links", seen)
	}
}

// The README is for the first minutes, leads to all docs, and says how all is tested.
func TestTheReadmeIsShort(t *testing.T) {
	readme := pageText(t, "../README.md")
	if n := strings.Count(readme, "\n"); n >= 120 {
		t.Errorf("the README has %d lines: at most 119", n)
	}
	if !regexp.MustCompile(`(?m)^ +make test( |$)`).MatchString(readme) {
		t.Error("the README has no test command")
	}
	docs, err := filepath.Glob("../docs/*.md")
	noErr(t, err)
	for _, page := range docs {
		if !strings.Contains(readme, "(docs/"+filepath.Base(page)) {
			t.Errorf("the README does not lead to %s", page)
		}
	}
}

// drawn are the rooms in the drawing of doc.go, as paths of what stands below what.
func drawn(t *testing.T) (rooms []string) {
	t.Helper()
	drawing, _, found := strings.Cut(pageText(t, "doc.go"), "One pod's way:")
	if !found {
		t.Fatal("doc.go has no drawing")
	}
	above := map[int]string{} // by how far a line stands in
	for _, m := range regexp.MustCompile(`(?m)^//\t( *)((?:[a-z0-9]+/ )*[a-z0-9]+/) +[^ ]`).FindAllStringSubmatch(drawing, -1) {
		depth := len(m[1])
		for name := range strings.FieldsSeq(m[2]) {
			above[depth] = strings.TrimSuffix(name, "/")
			if depth > 0 {
				above[depth] = above[depth-2] + "/" + above[depth]
			}
			rooms = append(rooms, above[depth])
		}
	}
	return rooms
}

// Each package stands in the drawing of the house, and nothing else does.
func TestTheDrawingHasEveryRoom(t *testing.T) {
	packages := map[string]bool{"testdata": true, "packaging": true}
	goFiles(t, func(file string, _ *token.FileSet, _ *ast.File) {
		packages[strings.TrimPrefix(filepath.Dir(file), "../")] = true
	})
	delete(packages, "..") // main.go
	rooms := drawn(t)
	for room := range packages {
		if !slices.Contains(rooms, room) {
			t.Errorf("%s is not in the drawing of doc.go", room)
		}
	}
	for _, room := range rooms {
		if !packages[room] {
			t.Errorf("doc.go draws %s, which is no package", room)
		}
	}
}

// declared are the names that Go files declare: F, T, T.Field, T.Method and package.F.
func declared(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{} // by folder
	goFiles(t, func(file string, _ *token.FileSet, f *ast.File) {
		dir := filepath.Dir(file)
		add := func(name string) {
			names[dir] = append(names[dir], name, f.Name.Name+"."+name)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(d.Name.Name)
				if d.Recv != nil {
					names[dir] = append(names[dir], strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")+"."+d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					addSpec(add, s)
				}
			}
		}
	})
	return names
}

// addSpec adds what a declaration of types, variables or constants declares.
func addSpec(add func(string), s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			add(n.Name)
		}
	case *ast.TypeSpec:
		add(s.Name.Name)
		if fields, is := s.Type.(*ast.StructType); is {
			for _, field := range fields.Fields.List {
				for _, n := range field.Names {
					add(s.Name.Name + "." + n.Name)
				}
			}
		}
	}
}

// Each path that CONTRIBUTING names is there, and each name of the code that it sends a reader
// to is declared in a folder of the same line.
func TestContributingNamesWhatThereIs(t *testing.T) {
	names := declared(t)
	isPath, isName := regexp.MustCompile(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]*$`), regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z][A-Za-z0-9]*)?$`)
	paths, symbols := 0, 0
	_, rows, _ := strings.Cut(pageText(t, "../CONTRIBUTING.md"), "## Where to change what")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for line := range strings.Lines(pageText(t, "../CONTRIBUTING.md")) {
		var dirs []string
		quoted := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1)
		for _, m := range quoted {
			if !isPath.MatchString(m[1]) {
				continue
			}
			paths++
			info, err := os.Stat(filepath.Join("..", m[1]))
			switch {
			case err != nil:
				t.Errorf("CONTRIBUTING names %s: %v", m[1], err)
			case info.IsDir():
				dirs = append(dirs, filepath.Join("..", m[1]))
			default:
				dirs = append(dirs, filepath.Dir(filepath.Join("..", m[1])))
			}
		}
		for _, m := range quoted {
			if !isName.MatchString(m[1]) || !strings.Contains(rows, line) {
				continue
			}
			symbols++
			if !slices.ContainsFunc(dirs, func(dir string) bool { return slices.Contains(names[dir], m[1]) }) {
				t.Errorf("CONTRIBUTING names %s, which is declared in none of %v", m[1], dirs)
			}
		}
	}
	if paths < 50 || symbols < 20 {
		t.Errorf("%d paths, %d names", paths, symbols)
	}
}
