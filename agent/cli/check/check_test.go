package check_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"monopod/agent/cli/check"
	"monopod/agent/config"
	"monopod/manifests"
)

// folder has files, given by name and content in turn.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for k := 0; k < len(files); k += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[k]), []byte(files[k+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func pod(metadata, spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {" + metadata + "}\nspec: {" + spec + "containers: [{name: c, image: i}]}\n"
}

// port is a pod that wants a port of the machine.
func port(name, port string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: c, image: i, ports: [{containerPort: 80, " + port + "}]}]}\n"
}

func checked(t *testing.T, in io.Reader, args ...string) *check.Result {
	t.Helper()
	cfg := config.Default()
	cfg.NodeName = "n"
	v, err := check.All(t.Context(), cfg, check.Given{}, args, in)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// found are the problems, "file:line:column: message", "~" before warnings.
func found(v *check.Result) (all []string) {
	for _, f := range v.Files {
		for _, p := range f.Problems {
			text := fmt.Sprintf("%s:%d:%d: %s", filepath.Base(f.Path), p.Line, p.Column, p.Message)
			if p.Warning {
				text = "~" + text
			}
			all = append(all, text)
		}
	}
	return all
}

// What is wrong between files stands at the later of the two.
func TestProblemsOfSeveralFiles(t *testing.T) {
	const one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"
	const refers = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i, envFrom: [{configMapRef: {name: m}}]}]}\n"
	claims := "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], "
	for _, row := range []struct {
		name  string
		files []string
		want  []string // each begins so
	}{
		{"two pods", []string{"a.yaml", pod("name: a", ""), "b.yaml", pod("name: b", "")}, nil},
		{"a pod twice", []string{"a.yaml", pod("name: a", ""), "b.yaml", pod("name: a", "")},
			[]string{"b.yaml:3:18: pod default/a-n is in DIR/a.yaml already: one of the two must go"}},
		{"a pod twice in a file", []string{"a.yaml", pod("name: a", "") + "---\n" + pod("name: a", "")},
			[]string{"a.yaml:8:18: default/a-n is given twice: line 1 of this file has it already"}},
		{"one name in two namespaces", []string{"a.yaml", pod("name: a", ""), "b.yaml", pod("name: a, namespace: prod", "")}, nil},
		{"an object twice", []string{"a.yaml", one, "b.yaml", one}, []string{"b.yaml:1:1: ConfigMap default/m is in DIR/a.yaml already: one of the two must go"}},
		{"a uid twice", []string{"a.yaml", pod("name: a, uid: u-1", ""), "b.yaml", pod("name: b, uid: u-1", "")}, []string{"b.yaml:3:26: "}},
		{"an object that is missing", []string{"a.yaml", refers},
			[]string{`~a.yaml:4:73: configmap "m" not found, says the test`}},
		{"an object of another file", []string{"a.yaml", refers, "b.yaml", one}, nil},
		{"a claim that no file gives", []string{"a.yaml", pod("name: a", claims)}, []string{"a.yaml:4:"}},
		{"a claim of a later file", []string{"a.yaml", pod("name: a", claims), "b.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"}, nil},
		{"a port of the machine twice", []string{"a.yaml", port("a", "hostPort: 8080"), "b.yaml", port("b", "hostPort: 8080")},
			[]string{"~b.yaml:4:79: TCP port 8080 of the machine is wanted by default/a-n too (DIR/a.yaml:4)"}},
		{"a port with two protocols", []string{"a.yaml", port("a", "hostPort: 8080"), "b.yaml", port("b", "hostPort: 8080, protocol: UDP")}, nil},
		{"warnings stand in order of line", []string{"a.yaml", port("a", "hostPort: 80"), "b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec:\n  containers:\n  - {name: c, image: i, ports: [{containerPort: 80, hostPort: 80}]}\n  - {name: d, image: A/B}\n"},
			[]string{"~b.yaml:6:63: TCP port 80", "~b.yaml:7:22: no registry takes"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := folder(t, row.files...)
			v := checked(t, nil, dir)
			v.CheckUIDs()
			v.CheckObjects(", says the test", true)
			got := found(v)
			for k := range got {
				got[k] = strings.ReplaceAll(got[k], dir, "DIR")
			}
			if !slices.EqualFunc(got, row.want, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(row.want, "\n"))
			}
		})
	}
}

func TestAFileThatIsNamedTwiceIsCheckedOnce(t *testing.T) {
	dir := folder(t, "a.yaml", pod("name: a", ""), "b.yaml", pod("name: b", ""))
	a := filepath.Join(dir, "a.yaml")
	for _, args := range [][]string{{a, a, dir}, {dir, a}, {dir, dir}, {dir + "/./a.yaml", dir}} {
		v, err := check.All(t.Context(), config.Default(), check.Given{}, args, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := found(v); len(got) > 0 || len(v.Files) != 2 || len(v.Pods) != 2 {
			t.Errorf("%v: %d files, %d pods, problems %v", args, len(v.Files), len(v.Pods), got)
		}
	}
}

// What the manifest URL gives counts as the agent's: files win, and none masks it by its name.
func TestAPageIsBelowAllFiles(t *testing.T) {
	const claim = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
	page := &check.Page{URL: "http://h/a.yaml", Body: []byte(pod("name: a", "") + "---\n" + pod("name: b", "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], "))}
	cfg := config.Default()
	cfg.NodeName = "n"
	v, err := check.All(t.Context(), cfg, check.Given{Page: page}, []string{folder(t, "a.yaml", pod("name: a", "")+claim), folder(t, "a.yaml", "")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range v.Pods {
		got = append(got, p.Key().String()+" of "+p.Annotations[manifests.AnnotationSource]+" "+v.From[p.Key().String()])
	}
	if want := []string{"default/a-n of http http://h/a.yaml"}; !slices.Equal(got, want) { // the claim of b is masked
		t.Errorf("with its name masked: %v, want %v", got, want)
	}
	dir := folder(t, "c.yaml", pod("name: a", "")+claim)
	if v, err = check.All(t.Context(), cfg, check.Given{Page: page}, []string{dir}, nil); err != nil {
		t.Fatal(err)
	}
	if v.From["default/a-n"] != filepath.Join(dir, "c.yaml") || v.From["default/b-n"] != "http://h/a.yaml" || len(v.Pods) != 2 {
		t.Errorf("beside a folder: %v, %d pods, problems %v", v.From, len(v.Pods), found(v))
	}
	if got := found(v); len(got) != 1 || !strings.Contains(got[0], "c.yaml gives default/a-n, too, and wins") {
		t.Errorf("problems %v", got)
	}
}

// A pod that is refused is not among those that are fit to run.
func TestWhichPodsAreFitToRun(t *testing.T) {
	dir := folder(t, "a.yaml", pod("name: a", ""), "b.yaml", pod("name: b", "restartPolicy: Sometimes, "), "c.yaml", pod("name: a", ""))
	v := checked(t, strings.NewReader(pod("name: d", "")), dir, "-")
	var got []string
	for _, p := range v.Pods {
		got = append(got, p.Key().String()+" of "+filepath.Base(v.From[p.Key().String()]))
	}
	if want := []string{"default/a-n of a.yaml", "default/d-n of -"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWhatIsNotThereIsAnError(t *testing.T) {
	_, err := check.All(t.Context(), config.Default(), check.Given{}, []string{filepath.Join(t.TempDir(), "none.yaml")}, nil)
	if !errors.Is(err, os.ErrNotExist) && (err == nil || !strings.Contains(err.Error(), "no such file")) {
		t.Errorf("got %v", err)
	}
}

// A wait for standard input can be interrupted.
func TestAnInputThatDoesNotEndCanBeLeft(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	cause := errors.New("interrupted")
	cancel(cause)
	if _, err := check.All(ctx, config.Default(), check.Given{}, []string{"-"}, r); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// `mkfifo p; generate >p & monopod once p`: which of the two opens the pipe first is chance.
func TestAPipeWaitsForItsWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan []string, 1)
	go func() {
		var names []string
		v, err := check.All(t.Context(), config.Default(), check.Given{}, []string{path}, nil)
		if err == nil {
			for _, p := range v.Pods {
				names = append(names, p.Pod.Name)
			}
		}
		got <- names
	}()
	select {
	case names := <-got:
		t.Fatalf("read %q without a writer", names)
	case <-time.After(50 * time.Millisecond): // one that does not wait has ended by then
	}
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(w, pod("name: a", ""))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if names := <-got; len(names) != 1 || !strings.HasPrefix(names[0], "a-") {
		t.Errorf("read %q", names)
	}
}

// Several folders are read as an agent's, of which later ones win.
func TestALaterFolderWins(t *testing.T) {
	low := folder(t, "bad.yaml", "kind: [", "db.yaml", pod("name: db", ""), "web.yaml", pod("name: web", ""))
	high := folder(t, "bad.yaml", "", "mine.yaml", pod("name: web", "priority: 7, "))
	v := checked(t, nil, low, high)
	want := []string{"~bad.yaml:0:0: " + high + "/bad.yaml masks it", "~web.yaml:3:18: " + high + "/mine.yaml gives default/web-n, too, and wins",
		"~bad.yaml:0:0: masks the files of this name in the folders before"}
	if got := found(v); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("found %q, want %q", got, want)
	}
	if len(v.Pods) != 2 || v.From["default/web-n"] != high+"/mine.yaml" || v.From["default/db-n"] != low+"/db.yaml" {
		t.Errorf("%d pods, from %v", len(v.Pods), v.From)
	}
	for name, text := range map[string]string{"twice in one folder": pod("name: a", ""), "an empty file in the first": ""} {
		first := folder(t, "a.yaml", pod("name: a", ""), "b.yaml", text)
		if got := found(checked(t, nil, first, folder(t, "c.yaml", pod("name: c", "")))); len(got) != 1 || got[0][0] == '~' {
			t.Errorf("%s: %q", name, got)
		}
	}
}
