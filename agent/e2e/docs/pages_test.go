//go:build e2e

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"monopod/agent/e2e/rig"
)

func TestMain(m *testing.M) {
	rig.Janitor()
	os.Exit(m.Run())
}

// envPages picks the pages that are run: all, or smoke.
const envPages = "MONOPOD_DOCS"

// smoke are the pages that are run before each change is merged.
var smoke = []string{"README.md", "operate.md"}

// bare are the pages that begin on a machine without monopod.
var bare = []string{"install.md"}

// TestPages runs the pages, each on a machine of its own.
func TestPages(t *testing.T) {
	which := os.Getenv(envPages)
	if which == "" {
		t.Skipf("without %s=all or smoke no page is run: make test-docs", envPages)
	}
	binary, err := rig.Build(t.TempDir())
	check(t, err)
	for _, page := range readPages(t) {
		if steps(t, page) == 0 || which == "smoke" && !slices.Contains(smoke, page.Name) {
			continue
		}
		t.Run(page.Name, func(t *testing.T) { runOnMachine(t, page.Name, binary) })
	}
}

// steps counts what a page has a person do.
func steps(t *testing.T, page Page) (n int) {
	for _, b := range page.Blocks {
		if b.NotRun(page.Name) != "" {
			continue
		}
		s, err := b.Steps()
		check(t, err)
		n += len(s)
	}
	return n
}

// TestPage runs one page, on the machine that TestPages made for it.
func TestPage(t *testing.T) {
	name := os.Getenv(envPage)
	if name == "" {
		t.Skip("TestPages makes the machine that this needs")
	}
	t.Chdir(checkout)
	r := furnish(t)
	defer runtime.KeepAlive(r)
	if name == kubeadmPage {
		furnishKubeadm(t, r)
	}
	pages := readPages(t)
	k := slices.IndexFunc(pages, func(p Page) bool { return p.Name == name })
	sh := newShell(t, checkout)
	if !slices.Contains(bare, name) {
		if shown, code := sh.types(t, install, true); code != 0 {
			t.Fatal(shown)
		}
	}
	person := &reader{T: t, shell: sh, page: pages[k]}
	person.read()
	if isUpdate() {
		person.correct(person.wrong)
	}
}

// reader is a person who does what a page says.
type reader struct {
	*testing.T
	shell *shell
	page  Page
	wrong []correction // what it quotes and the screen does not show
}

func (r *reader) read() {
	for _, b := range r.page.Blocks {
		if b.NotRun(r.page.Name) != "" {
			continue
		}
		steps, err := b.Steps()
		check(r.T, err)
		for _, s := range steps {
			start := time.Now()
			r.does(s)
			r.Logf("%s:%d: %.1f s", r.page.Name, s.Line, time.Since(start).Seconds())
		}
	}
}

// looks are the commands that only show what is: a person looks again until the machine has come
// so far.
var looks = regexp.MustCompile(`^(monopod (ps|describe|events|history|top|objects|images|logs|volume|wait .*--for gone)\b|curl )`)

// A person looks again for as long as soon. What a page is to quote is taken after settles.
const (
	soon    = 45 * time.Second
	settles = 8 * time.Second
)

// does does one step and compares what the screen shows with what the page quotes.
func (r *reader) does(s Step) {
	r.Helper()
	shown, code := r.shell.types(r.T, s.Command, !s.IsQuoted)
	for late := time.Now().Add(soon); !isUpdate() && s.IsQuoted && !Same(s.Output, shown) && looks.MatchString(s.Command) && time.Now().Before(late); {
		time.Sleep(200 * time.Millisecond)
		shown, code = r.shell.types(r.T, s.Command, false)
	}
	if isUpdate() && looks.MatchString(s.Command) && !Same(s.Output, shown) {
		time.Sleep(settles)
		shown, code = r.shell.types(r.T, s.Command, false)
	}
	switch {
	case code != 0 && (!s.IsQuoted || s.Output == "" && !isUpdate()):
		r.Fatalf("%s:%d: this fails with exit code %d:\n%s\n%s", r.page.Name, s.Line, code, s.Command, shown)
	case s.IsQuoted && !Same(s.Output, shown):
		r.wrong = append(r.wrong, correction{s, shown})
		complain := r.Fatalf
		if isUpdate() {
			complain = r.Errorf
		}
		complain("%s:%d: $ %s\nthe page quotes\n%s\nand the screen shows\n%s", r.page.Name, s.Line, s.Command, s.Output, shown)
	}
}

func readPages(t *testing.T) []Page {
	t.Helper()
	pages, err := ReadPages(root(t))
	check(t, err)
	return pages
}

// root is the checkout.
func root(t *testing.T) string {
	t.Helper()
	if os.Getenv(envPage) != "" { // on the machine that was made for it
		return checkout
	}
	dir, err := filepath.Abs("../../..")
	check(t, err)
	return dir
}
