package cli

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/clitest"
	"monopod/agent/cli/command"
	"monopod/agent/status"
)

// Each of another tool's words that monopod has an answer to names commands and flags that
// there are, and none of its own that it shadows.
func TestOwnWordsNameWhatThereIs(t *testing.T) {
	typed := regexp.MustCompile("`monopod ([^`]*)`")
	seen := map[string]bool{}
	for _, w := range command.OtherWords() {
		if seen[w.Name] {
			t.Errorf("%q is there twice, or is dead", w.Name)
		}
		seen[w.Name] = true
		if !strings.Contains(w.Name, " ") && App().Command(w.Name) != nil {
			t.Errorf("%q is a command: its row is dead", w.Name)
		}
		if strings.Contains(w.Here, "\n") || len(w.Here) > 180 {
			t.Errorf("%q: it is no short line: %s", w.Name, w.Here)
		}
		for _, m := range typed.FindAllStringSubmatch(w.Here, -1) {
			understood(t, w.Name, m[1])
		}
	}
	if len(seen) < 300 {
		t.Errorf("%d words are too few", len(seen))
	}
}

// understood types a line that an answer has, and wants its command to be called.
func understood(t *testing.T, word, line string) {
	t.Helper()
	app, called := App(), ""
	for _, k := range app.Commands {
		k.Action = func(*cli.Context) error { called = k.Name; return nil }
	}
	if err := command.Execute(t.Context(), app, strings.Fields(line)); err != nil || called != strings.Fields(line)[0] {
		t.Errorf("%q: `monopod %s` is not understood: %v", word, line, err)
	}
}

// Flags of other tools that there are here, too, need no answer. An answer names commands that there are.
func TestOwnFlagWordsAreNotThere(t *testing.T) {
	typed := regexp.MustCompile("`monopod ([^`]*)`")
	for _, w := range command.OtherFlags() {
		k := App().Command(w.Command)
		if k == nil || slices.ContainsFunc(k.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), strings.TrimLeft(w.Name, "-")) }) {
			t.Errorf("%s has the flag %s: its row is dead", w.Command, w.Name)
		}
		for _, m := range typed.FindAllStringSubmatch(w.Here, -1) {
			understood(t, w.Name, m[1])
		}
	}
}

// Who types the flag of another tool is told what it is called here.
func TestFlagsOfOtherToolsAreAnswered(t *testing.T) {
	for line, want := range map[string]string{
		"diff -f web.yaml":                "there is no flag -f: files stand without it, as in `monopod diff web.yaml`",
		"validate --filename web.yaml":    "there is no flag --filename: files stand without it, as in `monopod diff web.yaml`",
		"run -f web.yaml":                 "there is no flag -f: put the file into the folder of --manifests, or run it to its end with `monopod once web.yaml`",
		"once web.yaml --image nginx":     "there is no flag --image: a Pod manifest says what runs: put one into the folder of `monopod run`, or run it to its end with `monopod once web.yaml`",
		"ps --format json":                "there is no flag --format: here it is -o json or -o yaml",
		"ps --no-trunc":                   "there is no flag --no-trunc: here it is -o wide",
		"rollback web --to-revision 2":    "there is no flag --to-revision: here it is --to HASH; `monopod history web` lists the hashes",
		"run --pod-manifest-path /etc/po": "there is no flag --pod-manifest-path: here it is --manifests",
	} {
		var out, errs bytes.Buffer
		err := execute(t.Context(), strings.NewReader(""), &out, &errs, strings.Fields(line)...)
		if err == nil || command.ExitCode(err) != command.ExitUsage || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", line, err, want)
		}
	}
}

// habits are what people type who come from kubectl, docker, podman, crictl, systemctl, k3s and
// microk8s, and what monopod has no command for.
func habits(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/habits.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// Who types by habit is told in one line what to type here.
func TestHabitsAreAnswered(t *testing.T) {
	socket := clitest.Agent(t, "- metadata: {name: web-node1, namespace: default}\n  spec: {nodeName: node1, containers: [{name: main, image: a}]}", status.Manifests{Dir: "/m"}, status.Runtime{})
	t.Setenv("MONOPOD_SOCKET", socket)
	var b bytes.Buffer
	for _, line := range habits(t) {
		var out, errs bytes.Buffer
		err := execute(t.Context(), strings.NewReader(""), &out, &errs, strings.Fields(line)...)
		if err == nil {
			err = errors.New("no error")
		}
		if code := command.ExitCode(err); code != command.ExitUsage || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "there is no command") || out.Len() > 0 {
			t.Errorf("%s: exit code %d: %v\n%s", line, code, err, out.String())
		}
		b.WriteString("$ monopod " + line + "\n" + err.Error() + "\n")
	}
	clitest.Golden(t, b.String())
}

// Each command's help ends with what a person may type, at least two lines of it, and the
// command table takes each.
func TestEachCommandHasExamples(t *testing.T) {
	for _, k := range App().VisibleCommands() {
		text, _ := said(t, t.Context(), nil, k.Name, "--help")
		_, shown, _ := strings.Cut(text, "\nExamples:\n\n")
		shown, _, _ = strings.Cut(shown, "\n\n")
		lines := strings.Split(strings.TrimRight(shown, "\n"), "\n")
		if want := examples[k.Name]; len(lines) < 2 || strings.Join(lines, "\n") != "    "+strings.Join(want, "\n    ") {
			t.Errorf("monopod %s --help shows the examples\n%s\nwant at least two of\n%s", k.Name, shown, strings.Join(want, "\n"))
		}
		for _, line := range lines {
			own := regexp.MustCompile(`monopod ([^|>)]*)`).FindStringSubmatch(line)
			if own == nil || !strings.HasPrefix(own[1]+" ", k.Name+" ") || len(line) > 80 {
				t.Errorf("%s: %q is no short line of that command", k.Name, line)
				continue
			}
			understood(t, k.Name, own[1])
		}
	}
	for name := range examples {
		if App().Command(name) == nil {
			t.Errorf("examples of %q, which is no command", name)
		}
	}
}

// Help wraps lines that are too long for a screen, and a table with such a line is none.
func TestTablesOfTheHelpFitTheScreen(t *testing.T) {
	for _, k := range App().Commands {
		for line := range strings.SplitSeq(k.Description, "\n") {
			if strings.HasPrefix(line, "    ") && len(line) > 79 {
				t.Errorf("monopod %s --help: the line has more than 79 characters: %s", k.Name, line)
			}
		}
	}
}
