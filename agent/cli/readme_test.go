package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
	"monopod/cri/critest"
)

// pages are the README and the docs behind it, each with what it has people type.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

// What the README and the docs have people type is understood: the command is there, with its
// flags.
func TestTheDocsTypeWhatThereIs(t *testing.T) {
	n := 0
	typed := regexp.MustCompile("(?m)(?:^(?: {4,}|\\$ )(?:[^#\n]* && )?|`|sudo |- |<\\()(?:\\./)?monopod ([a-z][^`\n#&)]*)")
	for file, text := range pages(t) {
		for _, m := range typed.FindAllStringSubmatch(text, -1) {
			line, _, _ := strings.Cut(m[1], "|-")
			line, _, _ = strings.Cut(line, " | ")
			app := App()
			if app.Command(strings.Fields(line)[0]) == nil { // help would answer
				t.Errorf("%s: there is no monopod %s", file, line)
			}
			for _, k := range app.Commands {
				k.Action = func(*cli.Context) error { n++; return nil }
			}
			if err := command.Execute(t.Context(), app, strings.Fields(line)); err != nil {
				t.Errorf("%s: monopod %s: %v", file, line, err)
			}
		}
	}
	if n < 60 {
		t.Errorf("of the docs %d lines were found, which are too few", n)
	}
}

// block returns the first fenced block of a kind in a text.
func block(t *testing.T, text, kind string) string {
	t.Helper()
	m := regexp.MustCompile("(?s)\n```" + kind + "\n(.*?)```\n").FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("there is no block of %s", kind)
	}
	return m[1]
}

// firstPod is a person who does what the README says of the first pod.
type firstPod struct {
	*testing.T
	manifests, socket string
}

// The first pod of the README comes up, and the screen shows what the README shows but for ages.
func TestTheReadmesFirstPodRuns(t *testing.T) {
	readme := pages(t)["README.md"]
	t.Chdir(t.TempDir())
	p := &firstPod{t, filepath.Join(t.TempDir(), "manifests"), filepath.Join(t.TempDir(), "s")}
	if err := errors.Join(os.Mkdir(p.manifests, 0o700), os.WriteFile("hello.yaml", []byte(block(t, readme, "yaml")), 0o600)); err != nil {
		t.Fatal(err)
	}
	p.start()
	var screen strings.Builder
	for line := range strings.Lines(block(t, readme, "console")) {
		if typed, is := strings.CutPrefix(line, "$ "); is {
			screen.WriteString(line)
			screen.WriteString(p.types(strings.TrimSpace(typed)))
		}
	}
	ages := regexp.MustCompile(`(?m) [0-9]+s$`)
	if got, want := screen.String(), block(t, readme, "console"); ages.ReplaceAllString(got, " 3s") != want {
		t.Errorf("the screen shows\n%s\nand the README\n%s", got, want)
	}
}

// start runs an agent on a runtime in memory until the test ends.
func (p *firstPod) start() {
	p.Helper()
	runtime := critest.Start(p)
	runtime.AddImage("docker.io/library/busybox:1.37")
	runtime.Program("main", critest.Runs().Logs("hello"))
	dir := p.TempDir()
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- execute(ctx, strings.NewReader(""), io.Discard, io.Discard, "run", "--manifests", p.manifests, "--socket", p.socket, "--listen", "",
			"--root", filepath.Join(dir, "root"), "--pod-logs", filepath.Join(dir, "logs"), "--runtime-endpoint", runtime.Endpoint(), "--cgroup-driver", "none", "--node-name", "edge7")
	}()
	p.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			p.Errorf("the agent: %v", err)
		}
	})
	p.types("monopod wait hello --for gone") // it answers
}

// types returns what the screen shows of a line.
func (p *firstPod) types(line string) string {
	p.Helper()
	line, _, _ = strings.Cut(line, " #")
	var out bytes.Buffer
	words := strings.Fields(strings.ReplaceAll(line, "/etc/monopod/manifests", p.manifests))
	switch {
	case line == "monopod ps":
		o := Options{Source: client.Source{Socket: p.socket}, Format: print.Format{Columns: 500}, Err: &out}
		if err := Ps(p.Context(), &out, o); err != nil {
			p.Fatalf("%s: %v", line, err)
		}
	case words[0] == "monopod":
		if err := execute(p.Context(), strings.NewReader(""), &out, &out, append(words[1:], "--socket", p.socket)...); err != nil {
			out.WriteString("monopod: " + err.Error() + "\n")
		}
	default:
		if text, err := exec.CommandContext(p.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			p.Fatalf("%s: %v: %s", line, err, text)
		}
	}
	if words[0] == "sed" {
		p.types("monopod wait /etc/monopod/manifests/hello.yaml --for accepted") // until the agent has seen that it is not
	}
	return strings.ReplaceAll(out.String(), p.manifests, "/etc/monopod/manifests")
}

// The settings that the README shows are some.
func TestTheReadmesSettingsAreRead(t *testing.T) {
	_, rest, _ := strings.Cut(pages(t)["README.md"], "/etc/monopod/config.yaml")
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(block(t, rest, "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := execute(t.Context(), strings.NewReader(""), io.Discard, io.Discard, "validate", "--config", file); err != nil {
		t.Error(err)
	}
}
