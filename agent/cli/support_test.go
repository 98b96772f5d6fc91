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
