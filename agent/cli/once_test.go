package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/agent/cli/command"
)

const (
	goodJob = "apiVersion: v1\nkind: Pod\nmetadata: {name: job}\nspec:\n  restartPolicy: Never\n  containers: [{name: c, image: i}]\n"
	badJob  = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec:\n  restartPolicy: Often\n  containers: [{name: c, image: i}]\n"
)

// Nothing of this comes as far as asking for a runtime.
func TestOnceRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"good.yaml": goodJob, "bad.yaml": badJob, "twice.yaml": goodJob,
		"wrong.env": "# a comment\nA=b c\ntwo words\n", "open.yaml": strings.Replace(goodJob, "image: i", "image: '$(NOT_SET_HERE)'", 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		args  string
		stdin string
		says  string
	}{
		{"", "", "once what? Give files or folders"},
		{"DIR/none.yaml", "", "none.yaml: no such file"},
		{"DIR/empty", "", "there are no pods in DIR/empty"},
		{"DIR/bad.yaml", "", "DIR/bad.yaml:5:18: spec.restartPolicy"},
		{"DIR/good.yaml DIR/twice.yaml", "", "pod default/job-n is in DIR/good.yaml already"},
		{"-", badJob, "-:5:18: spec.restartPolicy"},
		{"--until done DIR/good.yaml", "", "there is only ready"},
		{"--keep DIR/good.yaml", "", "--keep goes with --until ready"},
		{"--until ready --exit-code-from job DIR/good.yaml", "", "choose one"},
		{"--timeout soon DIR/good.yaml", "", `--timeout: "soon" is no duration such as 90s or 5m`},
		{"--timeout -1s DIR/good.yaml", "", "a time above 0"},
		{"--exit-code-from jbo DIR/good.yaml", "", "there is job/c"},
		{"--report html=x DIR/good.yaml", "", "choose junit or json"},
		{"--report json=DIR/r --report junit=DIR/./r DIR/good.yaml", "", "another report goes to that file"},
		{"--log-level loud DIR/good.yaml", "", "--log-level"},
		{"--env 1x=y DIR/good.yaml", "", `--env "1x=y": write NAME=VALUE`},
		{"--env-file DIR/none DIR/good.yaml", "", "--env-file: open DIR/none: no such file"},
		{"--env-file DIR/wrong.env DIR/good.yaml", "", `--env-file: DIR/wrong.env:3: "two words": write NAME=VALUE`},
		{"--env NOT_SET_HERE DIR/open.yaml", "", "DIR/open.yaml:6:33: spec.containers[0].image: $(NOT_SET_HERE) has no value"},
		{"--set c DIR/good.yaml", "", `--set "c": write CONTAINER=IMAGE`},
		{"--set d=x DIR/good.yaml", "", "--set: no pod has a container d"},
		{"--artifact job/c:/out DIR/good.yaml", "", "write POD/CONTAINER:/PATH=DIR"},
		{"--artifact job/d:/out=x DIR/good.yaml", "", "there is job/c"},
		{"--remove DIR", "", "is not what `monopod once` left"},
		{"--remove DIR DIR/good.yaml", "", "--remove runs nothing"},
		{"--listen :1 DIR/good.yaml", "", "unknown flag: --listen"},
	} {
		t.Run(row.args, func(t *testing.T) {
			args := append([]string{"once"}, strings.Fields(strings.ReplaceAll(row.args, "DIR", dir))...)
			if !strings.Contains(row.args, "--remove") {
				args = append(args, "--node-name", "n")
			}
			var said bytes.Buffer
			err := execute(t.Context(), strings.NewReader(row.stdin), os.Stdout, &said, args...)
			if err != nil {
				said.WriteString(err.Error())
			}
			if text := strings.ReplaceAll(said.String(), dir, "DIR"); command.ExitCode(err) != command.ExitUsage || !strings.Contains(text, row.says) {
				t.Errorf("code %d, said %s", command.ExitCode(err), text)
			}
		})
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("folders are left: %v", left)
	}
}

// A user who can run nothing reads so, and not what the runtime's socket refuses.
func TestOnceIsForRoot(t *testing.T) {
	if err := mayRun(1000); err == nil || err.Error() != "once needs the runtime, mounts and cgroups: run it as root" {
		t.Error(err)
	}
	if err := mayRun(0); err != nil {
		t.Error(err)
	}
}

// A CI service reads the report that is there, and there may be one of a run before.
func TestARunThatDoesNotBeginHasAReport(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("once is for root: run this test as root")
	}
	dir, report := t.TempDir(), filepath.Join(t.TempDir(), "report.xml")
	t.Setenv("TMPDIR", t.TempDir())
	for name, text := range map[string]string{"good.yaml": goodJob, "bad.yaml": badJob} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		args string
		code int
		want string
	}{
		{"--runtime-endpoint unix:///none --dir " + dir + " " + dir + "/good.yaml", 125, `<error message="folder for the run: ` + dir + " is not empty"},
		{dir + "/bad.yaml", 2, `<error message="the manifests are invalid" type="error"><![CDATA[` + dir + "/bad.yaml:"},
		{"--set d=x " + dir + "/good.yaml", 2, `<error message="--set: no pod has a container d"`},
		{"--config " + dir + "/bad.yaml " + dir + "/good.yaml", 2, `<error message="` + dir + "/bad.yaml:"},
		{"--until ready --exit-code-from job " + dir + "/good.yaml", 2, `<error message="--until ready and --exit-code-from: choose one`},
	} {
		if err := os.WriteFile(report, []byte("all has passed"), 0o644); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"once", "--node-name", "n", "--report", "junit=" + report}, strings.Fields(row.args)...)
		err := execute(t.Context(), strings.NewReader(""), os.Stdout, &bytes.Buffer{}, args...)
		text, unread := os.ReadFile(report)
		if command.ExitCode(err) != row.code || unread != nil || !strings.Contains(string(text), row.want) {
			t.Errorf("%s: code %d, %v: %s", row.args, command.ExitCode(err), err, text)
		}
	}
}
