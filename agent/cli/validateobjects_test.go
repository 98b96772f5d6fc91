package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/agent/cli/command"
)

const (
	podOfObjects = `apiVersion: v1
kind: Pod
metadata: {name: job}
spec:
  restartPolicy: Never
  containers: [{name: c, image: 'img:1', envFrom: [{configMapRef: {name: m}}, {secretRef: {name: none, optional: true}}]}]
`
	aConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"
)

// writeFiles makes a folder of files, given by name and content in turn.
func writeFiles(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for k := 0; k < len(files); k += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[k]), []byte(files[k+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestValidateKnowsObjects(t *testing.T) {
	rows := []struct {
		name, dir string
		want      []string
		code      int
	}{
		{"all there", writeFiles(t, "a.yaml", podOfObjects, "b.yaml", aConfigMap),
			[]string{"ok   DIR/a.yaml   default/job-n (1 container)", "ok   DIR/b.yaml   ConfigMap default/m", "2 files, 1 pod, no problems\n"}, 0},
		{"one missing", writeFiles(t, "a.yaml", podOfObjects),
			[]string{`DIR/a.yaml:6:74: warning: spec.containers[0].envFrom[0].configMapRef.name: configmap "m" not found among these files: the pod waits until there is one`, "no problems, 1 warning"}, 0},
		{"one twice", writeFiles(t, "a.yaml", aConfigMap, "b.yaml", aConfigMap), []string{"DIR/b.yaml:1:1: ConfigMap default/m is in DIR/a.yaml already: one of the two must go"}, command.ExitUsage},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			text, code := said(t, t.Context(), nil, "validate", row.dir)
			text = strings.ReplaceAll(text, row.dir, "DIR")
			for _, want := range row.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing from\n%s", want, text)
				}
			}
			if code != row.code {
				t.Errorf("code %d", code)
			}
		})
	}
}

// A run whose pod refers to what no file gives starts nothing: it would wait for ever.
func TestOnceRefusesPodsWithoutTheirObjects(t *testing.T) {
	dir := writeFiles(t, "a.yaml", podOfObjects)
	text, code := said(t, t.Context(), nil, "once", dir)
	if want := `a.yaml:6:74: spec.containers[0].envFrom[0].configMapRef.name: configmap "m" not found: add it to the files of the run, which are read once`; !strings.Contains(text, want) || code != command.ExitUsage {
		t.Errorf("code %d, said %s", code, text)
	}
}
