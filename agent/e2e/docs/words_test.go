package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// trouble is a section of troubleshoot.md: what ps says, and the screens that show it.
type trouble struct {
	words, text string
}

func troubles(t *testing.T) (all []trouble) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/troubleshoot.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := regexp.MustCompile("(?m)^## `(.+)`\n").FindAllStringSubmatchIndex(string(text), -1)
	for k, at := range sections {
		end := len(text)
		if k+1 < len(sections) {
			end = sections[k+1][0]
		}
		all = append(all, trouble{string(text[at[2]:at[3]]), string(text[at[1]:end])})
	}
	return all
}

// yours is what stands in capitals in the words of a trouble.
var yours = regexp.MustCompile(`\b[A-Z]+( [A-Z]+)*\b`)

// pieces are the words between what is yours, as strings of the code may have them.
func pieces(words string) (all []string) {
	for _, piece := range regexp.MustCompile(`[:;()]`).Split(yours.ReplaceAllString(words, ";"), -1) {
		if piece = strings.TrimSpace(piece); piece != "" {
			all = append(all, piece)
		}
	}
	return all
}

// What troubleshoot.md says that ps prints is on the screen of its section; without a screen, the
// code has each piece of it in a string.
func TestTroublesAreInTheWordsOfPs(t *testing.T) {
	all := troubles(t)
	if len(all) < 12 {
		t.Fatalf("%d troubles", len(all))
	}
	code := strings.Join(literals(t), "\n")
	for _, trouble := range all {
		if !strings.Contains(trouble.text, "```console") {
			for _, piece := range pieces(trouble.words) {
				if !strings.Contains(code, piece) {
					t.Errorf("%q: no string of the code has %q", trouble.words, piece)
				}
			}
			continue
		}
		pattern := yours.ReplaceAllString(regexp.QuoteMeta(trouble.words), ".+")
		if screen := strings.Join(strings.Fields(trouble.text), " "); !regexp.MustCompile(pattern).MatchString(screen) {
			t.Errorf("no screen of its section shows %q", trouble.words)
		}
	}
}

// literals are the strings of the product's code.
func literals(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				all = append(all, text)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
