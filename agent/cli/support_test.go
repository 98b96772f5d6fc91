package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/clitest"
	"monopod/agent/config"
	"monopod/agent/events"
	"monopod/agent/server"
	"monopod/agent/status"
	"monopod/manifests"
)

// secretPods have secrets in their variables, headers and messages; db is not well.
const secretPods = `
- metadata: {name: web-n1, namespace: default}
  spec: {nodeName: n1, containers: [{name: app, env: [{name: LONG, value: "variable-of-web"}, {name: SHORT, value: "k9"}],
    livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: X, value: "header-of-web"}]}}}]}
  status: {phase: Running, containerStatuses: [{name: app, ready: true, state: {running: {}}}]}
- metadata: {name: db-n1, namespace: default, uid: u1}
  spec: {nodeName: n1, containers: [{name: main}]}
  status: {phase: Running, message: "it is said: variable-of-web", containerStatuses: [{name: main, restartCount: 1, ready: false, containerID: "containerd://b",
    state: {running: {}}, lastState: {terminated: {exitCode: 1, containerID: "containerd://a"}}}]}
`

// archived runs support, and returns the texts of its archive without the folder before their names.
func archived(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files, all := tar.NewReader(zip), map[string]string{}
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		dir, name, _ := strings.Cut(h.Name, "/")
		if !strings.HasPrefix(dir, "monopod-support-n1-") {
			t.Errorf("the folder of the archive is %s", dir)
		}
		all[name] = string(text)
	}
}

// supportRoot is a root dir with a Secret, and a folder of logs with one of the unwell container.
func supportRoot(t *testing.T) (root, logs string) {
	t.Helper()
	root, logs = clitest.Previous(t, secretPods, status.Manifests{Dir: "/etc/m"}), t.TempDir()
	r, err := checkpoint.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"}, Data: map[string][]byte{"k": []byte("value-of-a-secret")}}
	if err := r.SaveObjects([]*manifests.Object{manifests.NewObject(nil, secret, "/etc/m/s.yaml")}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(logs, "default_db-n1_u1", "main")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, line := range map[string]string{"0.log": "attempt 0 has value-of-a-secret", "1.log": "attempt 1 fails"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("2026-05-04T11:00:00.000000000Z stdout F "+line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, logs
}

// With an agent and without, the archive explains the pods and has no value that only they know.
func TestTheSupportArchiveHasNoSecrets(t *testing.T) {
	root, logs := supportRoot(t)
	store := clitest.Store(t, t.TempDir(), clitest.Pods(t, secretPods)...)
	store.SetManifests(status.Manifests{Dir: "/etc/m"})
	recorder := events.Open(events.Config{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(recorder.Close)
	socket := clitest.Serve(t, server.Config{Store: store, Events: recorder, PodLogs: logs, Settings: func() map[string]any { return map[string]any{"root": root} }})
	for _, where := range []string{socket, "/nowhere/s"} {
		var out, errs bytes.Buffer
		err := execute(t.Context(), strings.NewReader(""), &out, &errs, "support", "--socket", where, "--root", root, "--pod-logs", logs, "-")
		if err != nil {
			t.Fatalf("%v\n%s", err, errs.String())
		}
		all := archived(t, out.Bytes())
		for name, text := range all {
			for _, secret := range []string{"variable-of-web", "header-of-web", "value-of-a-secret", "k9"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s: %s has %s:\n%s", where, name, secret, text)
				}
			}
		}
		for name, part := range map[string]string{
			"about.txt":                            "describe.txt",
			"version.txt":                          "monopod",
			"doctor.txt":                           "runtime",
			"ps.txt":                               "db",
			"describe.txt":                         "LONG:",
			"pods.json":                            `"name": "SHORT"`,
			"manifests.json":                       `"dir": "/etc/m"`,
			"settings.yaml":                        "root: " + root,
			"logs/default_db-n1_main.log":          "attempt 1 fails",
			"logs/default_db-n1_main.previous.log": "attempt 0 has <elided>",
			"machine/etc/os-release":               "NAME",
		} {
			if text, has := all[name]; !has || !strings.Contains(text, part) {
				t.Errorf("%s: %s is there: %v\n%s\nwant %q in it", where, name, has, text, part)
			}
		}
		if _, has := all["logs/default_web-n1_app.log"]; has {
			t.Errorf("%s: the log of a container that is well is there", where)
		}
	}
}

func TestTheSupportArchiveIsMadeForItsOwnerOnly(t *testing.T) {
	root, logs := supportRoot(t)
	file := filepath.Join(t.TempDir(), "a.tar.gz")
	line := "support --socket /nowhere/s --root " + root + " --pod-logs " + logs + " "
	typedLine{line + file, []string{"about.txt", "ps.txt", file + " has these files"}, nil, 0}.check(t)
	fi, err := os.Stat(file)
	if err != nil || fi.Mode() != 0o600 {
		t.Errorf("the archive is %v (%v)", fi, err)
	}
	typedLine{line + file, nil, []string{file, "exists"}, 1}.check(t)
	typedLine{line + "a b", nil, []string{"one file"}, 2}.check(t)
}

// A folder that holds other machines' files is read as this machine's.
func TestTheConfigurationOfTheRuntimeIsThereWithoutPasswords(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "etc", "containerd")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("version = 2\npassword = \"p4ss\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	all := configFiles(root)
	if len(all) != 1 || all[0].Name != "machine/etc/containerd/config.toml" || all[0].Text != "version = 2\npassword = <elided>\n" {
		t.Errorf("the files are %+v", all)
	}
}

// A number that is not in quotes makes a manifest wrong, and its problem quotes it; no pod has it.
func TestTheSupportArchiveHasNoValueOfAManifestThatIsNotAccepted(t *testing.T) {
	problem := func(field, value string) status.Problem {
		return status.Problem{File: "/etc/m/p.yaml", Line: 9, Column: 31, Field: field,
			Message: "expected a string, got a number (" + value + "): put it in quotes, \"" + value + "\""}
	}
	root := clitest.Previous(t, "[]", status.Manifests{Dir: "/etc/m", Files: []status.File{{Path: "/etc/m/p.yaml", Problems: []status.Problem{
		problem("spec.containers[0].env[0].value", "90817263"), problem("spec.containers[0].env[1].value", "5937"),
		problem("spec.containers[0].command[1]", "31415"),
	}}}})
	var out, errs bytes.Buffer
	if err := execute(t.Context(), strings.NewReader(""), &out, &errs, "support", "--socket", "/nowhere/s", "--root", root, "--node-name", "n1", "-"); err != nil {
		t.Fatal(err)
	}
	all := archived(t, out.Bytes())
	for _, name := range []string{"ps.txt", "files.txt", "manifests.json"} {
		if text := all[name]; strings.Contains(text, "90817263") || strings.Contains(text, "5937") || !strings.Contains(text, "31415") {
			t.Errorf("%s is\n%s", name, text)
		}
	}
}

// A runtime splits long lines into parts (P, then F). A value at the border of two parts is a value.
func TestTheSupportArchiveHasNoValueInAnotherForm(t *testing.T) {
	for name, lines := range map[string]string{
		"split by the runtime":     "2026-05-04T11:00:00.000000000Z stdout P attempt 1 value-of\n2026-05-04T11:00:00.000000001Z stdout F -a-secret\n",
		"base64 with its last \\n": "2026-05-04T11:00:00.000000000Z stdout F k: dmFsdWUtb2YtYS1zZWNyZXQK\n",
		"percent-encoded":          "2026-05-04T11:00:00.000000000Z stdout F GET /?k=value%2Dof%2Da%2Dsecret\n",
	} {
		root, logs := supportRoot(t)
		if err := os.WriteFile(filepath.Join(logs, "default_db-n1_u1", "main", "1.log"), []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if err := execute(t.Context(), strings.NewReader(""), &out, &errs, "support", "--socket", "/nowhere/s", "--root", root, "--pod-logs", logs, "-"); err != nil {
			t.Fatal(err)
		}
		text := archived(t, out.Bytes())["logs/default_db-n1_main.log"]
		for _, leak := range []string{"-a-secret", "dmFsdWUtb2YtYS1zZWNyZXQ", "%2Dof%2Da"} {
			if strings.Contains(text, leak) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// A container writes one line without an end: what is collected is bounded before it is all in memory.
func TestTheSupportArchiveKeepsTheEndOfALongLine(t *testing.T) {
	root, logs := supportRoot(t)
	f, err := os.Create(filepath.Join(logs, "default_db-n1_u1", "main", "1.log"))
	if err != nil {
		t.Fatal(err)
	}
	part := "2026-05-04T11:00:00.000000000Z stdout P " + strings.Repeat("x", 16<<10) + "\n"
	for range 2048 { // 32 MiB
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	x := newExamined(t.Context(), configOf(root, logs))
	for _, p := range x.containerLogs(t.Context()) {
		if len(p.Text) > 8<<20 {
			t.Errorf("%s: %d MiB are kept until the archive is written, of which it has 1", p.Name, len(p.Text)>>20)
		}
	}
}

func configOf(root, logs string) config.Config {
	c := config.Default()
	c.Root, c.PodLogs, c.Socket = root, logs, "/nowhere/s"
	return c
}

func TestTheSupportArchiveHasTheManagedRuntime(t *testing.T) {
	root, logs := supportRoot(t)
	dir := filepath.Join(root, "containerd")
	if err := os.MkdirAll(filepath.Join(dir, "net.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"config.toml": "version = 3\npassword = \"p4ss\"\n", "net.d/10-monopod.conflist": `{"name": "n"}`,
		"log.1": "panic: token=p4ss\n",
		"log":   "level=info msg=\"key: [\"\nlevel=info token=p4ss\nlevel=info msg=value-of-a-secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	if err := execute(t.Context(), strings.NewReader(""), &out, &errs, "support", "--socket", "/nowhere/s", "--root", root, "--pod-logs", logs, "-"); err != nil {
		t.Fatal(err)
	}
	all := archived(t, out.Bytes())
	for name, want := range map[string]string{"managed/config.toml": "version = 3\npassword = <elided>\n", "managed/net.d/10-monopod.conflist": `{"name": "n"}`,
		"managed/log.1": "panic: token=<elided>\n",
		"managed/log":   "level=info msg=\"key: <elided>\nlevel=info token=<elided>\nlevel=info msg=<elided>\n"} {
		if all[name] != want {
			t.Errorf("%s is %q, want %q", name, all[name], want)
		}
	}
}
