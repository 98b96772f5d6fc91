package cli

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/cli/command"
	"monopod/agent/events"
	"monopod/agent/print"
	"monopod/agent/server"
	"monopod/agent/status"
)

// typedPods are two pods of one name, a job that is done, and one that is asked to go.
const typedPods = `
- metadata: {name: web-n1, namespace: default, labels: {app: web}}
  spec: {nodeName: n1, containers: [{name: app}, {name: proxy}]}
  status:
    phase: Running
    conditions: [{type: Ready, status: "True"}]
    containerStatuses:
    - {name: app, ready: true, containerID: "containerd://a", state: {running: {}}}
    - {name: proxy, ready: true, containerID: "containerd://p", state: {running: {}}}
- metadata: {name: job-n1, namespace: default, labels: {app: job}}
  spec: {nodeName: n1, restartPolicy: Never, containers: [{name: main}]}
  status: {phase: Succeeded, containerStatuses: [{name: main, state: {terminated: {exitCode: 0, reason: Completed}}}]}
- metadata: {name: leaves-n1, namespace: default, deletionTimestamp: "2026-05-04T11:59:00Z"}
  spec: {nodeName: n1, containers: [{name: main}]}
  status: {phase: Running, containerStatuses: [{name: main, state: {terminated: {exitCode: 137, reason: Error}}}]}
`

func typedManifests() status.Manifests {
	return status.Manifests{Dir: "/etc/m", Files: []status.File{
		{Path: "/etc/m/web.yaml", Pods: []string{"default/web-n1"}, Held: true, Problems: []status.Problem{
			{File: "/etc/m/web.yaml", Line: 12, Column: 3, Field: "spec.x", Message: "unknown field"}}},
		{Path: "/etc/m/job.yaml", Pods: []string{"default/job-n1"}, Problems: []status.Problem{{File: "/etc/m/job.yaml", Message: "of the job"}}},
	}}
}

// typedLine is what comes of a line: parts of what is printed. Without parts nothing is.
type typedLine struct {
	line      string
	out, errs []string
	code      int
}

// typedAgent serves those pods, their manifests and what they use.
func typedAgent(t *testing.T) (socket string) {
	store := clitest.Store(t, t.TempDir(), clitest.Pods(t, typedPods)...)
	store.SetManifests(typedManifests())
	store.SetRuntime(status.Runtime{Up: true, Endpoint: "unix:///nowhere/r.sock"})
	recorder := events.Open(events.Config{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(recorder.Close)
	return clitest.Serve(t, server.Config{Store: store, Events: recorder})
}

func (l typedLine) check(t *testing.T, args ...string) {
	t.Helper()
	words := strings.Fields(l.line)
	words = slices.Concat(words[:1], args, words[1:])
	var out, errs bytes.Buffer
	err := execute(t.Context(), strings.NewReader(""), &out, &errs, words...)
	if err != nil {
		errs.WriteString(err.Error())
	}
	if code := command.ExitCode(err); code != l.code {
		t.Errorf("%s: exit code %d, want %d", l.line, code, l.code)
	}
	for _, printed := range []struct {
		where, text string
		parts       []string
	}{{"standard output", out.String(), l.out}, {"standard error", errs.String(), l.errs}} {
		for _, part := range printed.parts {
			if bare, not := strings.CutPrefix(part, "not "); not && strings.Contains(printed.text, bare) || !not && !strings.Contains(printed.text, part) {
				t.Errorf("%s: on %s is\n%s\nwant %s", l.line, printed.where, printed.text, part)
			}
		}
		if len(printed.parts) == 0 && printed.text != "" {
			t.Errorf("%s: on %s is\n%s\nwant nothing", l.line, printed.where, printed.text)
		}
	}
}

func TestWhatUsersType(t *testing.T) {
	socket := typedAgent(t)
	const problem = "web.yaml:12:3: spec.x: unknown field (the last good version of default/web-n1 runs on)"
	row := func(words ...string) string { return strings.Join(words, "   ") }
	for _, l := range []typedLine{
		{"ps web", []string{row("default  ", "web"), "not job"}, []string{problem, "not of the job"}, 0},
		{"ps -l app=job", []string{"job"}, []string{"of the job", "not " + problem}, 0},
		{"ps", []string{"NAMESPACE   NAME", "web", "not unknown field", "not 137"}, []string{problem, "of the job", "not 137"}, 0},
		{"ps -A", []string{"NAMESPACE   NAME"}, []string{problem}, 0},
		{"ps --all-namespaces", []string{"NAMESPACE   NAME"}, []string{problem}, 0},
		{"ps -A -n default", nil, []string{"-A and -n exclude each other"}, 2},
		{"ps --no-headers web", []string{"default   web", "not NAME"}, []string{problem}, 0},
		{"ps -o name", []string{"default/job\ndefault/leaves\ndefault/web\n"}, nil, 0},
		{"ps -w", nil, []string{"--watch needs a terminal", "monopod events -w"}, 2},
		{"ps -n nope", nil, []string{"No pods in namespace nope.", "not unknown field"}, 0},
		{"ps -l app=nope", nil, []string{"No pods match."}, 0},
		{"ps pod/web", []string{"web"}, []string{problem}, 0},
		{"ps pods web job", []string{"web", "job"}, []string{problem}, 0},
		{"describe pod web", []string{"Name:               web", problem, "not Name:               job"}, nil, 0},
		{"describe pods/web", []string{"Name:               web"}, nil, 0},
		{"describe pod", []string{"Name:               web", "Name:               job"}, nil, 0},
		{"describe leaves", []string{"Terminating", "not exit code 137"}, nil, 0},
		{"describe -n default web", []string{"Name:               web"}, nil, 0},
		{"describe -n nope", nil, []string{"No pods in namespace nope."}, 0},
		{"describe -n nope web", nil, []string{`there is no pod "web" in namespace nope`}, 1},
		{"wait --all --timeout 1s -n default -l app", []string{"default/web: ready", "default/job: succeeded"}, nil, 0},
		{"wait -l app --timeout 1s", []string{"default/web: ready", "default/job: succeeded"}, nil, 0},
		{"wait job --for ready --timeout 1s", nil, []string{"default/job is not ready and will not be: it has succeeded"}, 1},
		{"exec web/proxy -c app -- ls", nil, []string{`"web/proxy" names container proxy: name containers once`}, 2},
		{"exec web/nope -- ls", nil, []string{`pod default/web has no container "nope": it has app, proxy`}, 1},
		{"exec web/proxy -- ls", nil, []string{"container proxy of pod default/web"}, 1},
		{"logs pod/web -c nope", nil, []string{`pod default/web has no container "nope"`}, 1},
		{"events -n nope", nil, []string{"No events in namespace nope."}, 0},
		{"events -A", nil, []string{"No events."}, 0},
	} {
		l.check(t, "--socket", socket)
	}
}

// What reads says what was last, what asks for something says that nothing comes of it, and the
// exit code tells scripts that no agent runs.
func TestTheExitCodeSaysThatNoAgentRuns(t *testing.T) {
	root := clitest.Previous(t, typedPods, typedManifests())
	for _, l := range []typedLine{
		{"ps --root " + root, []string{"web"}, []string{"monopod: "}, 3},
		{"describe --root " + root + " web", []string{"Name:               web"}, []string{"monopod: "}, 3},
		{"forget web", nil, []string{"the agent does not run"}, 3},
		{"restart web", nil, []string{"the agent does not run"}, 3},
		{"stop web", nil, []string{"the agent does not run"}, 3},
		{"start web", nil, []string{"the agent does not run"}, 3},
		{"hold web", nil, []string{"the agent does not run"}, 3},
		{"release web", nil, []string{"the agent does not run"}, 3},
		{"history web", nil, []string{"the agent does not run"}, 3},
		{"rollback web", nil, []string{"the agent does not run"}, 3},
	} {
		l.check(t, "--socket", "/nowhere/monopod.sock")
	}
}

// On a terminal the namespace shows where it tells something, and all is in one place.
func TestATerminalHasTheWordsBelowTheTable(t *testing.T) {
	var out bytes.Buffer
	o := Options{Source: client.Source{Socket: typedAgent(t)}, Format: print.Format{Columns: 60}, Choice: client.Choice{Names: []string{"web"}}, Err: &out}
	for _, row := range []struct {
		all  bool
		want string
	}{
		{false, "NAME   READY   STATUS    RESTARTS   AGE\nweb    2/2     Running   0          -\n\n" +
			"web.yaml:12:3: spec.x: unknown field (the last good version\n  of default/web-n1 runs on)\n"},
		{true, "NAMESPACE   NAME   READY   STATUS    RESTARTS   AGE\ndefault     web    2/2     Running   0          -\n\n" +
			"web.yaml:12:3: spec.x: unknown field (the last good version\n  of default/web-n1 runs on)\n"},
	} {
		out.Reset()
		o.AllNamespaces = row.all
		if err := Ps(t.Context(), &out, o); err != nil || out.String() != row.want {
			t.Errorf("%v, printed\n%s\nwant\n%s", err, out.String(), row.want)
		}
	}
}

// What other programs call a thing is answered with what it is called here.
func TestWordsOfOtherToolsMeetHelp(t *testing.T) {
	socket := typedAgent(t)
	t.Setenv("MONOPOD_SOCKET", socket)
	for line, want := range map[string]string{
		"get pods":                            "`monopod ps`",
		"delete pod web":                      "remove /etc/m/web.yaml",
		"delete job":                          "remove /etc/m/job.yaml",
		"delete nope":                         "remove its file from /etc/m",
		"rm web":                              "remove /etc/m/web.yaml",
		"apply -f x.yaml":                     "put the file into /etc/m",
		"create -f x.yaml":                    "put the file into /etc/m",
		"edit web":                            "edit /etc/m/web.yaml",
		"down web":                            "remove /etc/m/web.yaml",
		"ls":                                  "`monopod ps`",
		"status":                              "`monopod ps`",
		"log web":                             "`monopod logs`",
		"inspect web":                         "`monopod describe`",
		"run --hostname-override x":           "here it is --node-name",
		"run --pod-manifest-path x":           "here it is --manifests",
		"run --container-runtime-endpoint x":  "here it is --runtime-endpoint",
		"run --root-dir x":                    "here it is --root",
		"run --v 3":                           "here it is --log-level",
		"run -v 3":                            "here it is --log-level",
		"run --kubeconfig x":                  "there is no API server",
		"run --bootstrap-kubeconfig=x":        "there is no API server",
		"once --hostname-override=x pod.yaml": "here it is --node-name",
		"once --root-dir x pod.yaml":          "unknown flag: --root-dir",
		"once --port 1 pod.yaml":              "unknown flag: --port",
		"help get":                            "`monopod ps`",
		"forward web 80":                      "`monopod port-forward POD 8080:80`",
	} {
		typedLine{line, nil, []string{want}, 2}.check(t)
	}
	t.Setenv("MONOPOD_SOCKET", "/nowhere/s")
	for line, want := range map[string]string{
		"delete pod web": "remove its file from the folder of manifests",
		"apply -f x":     "put the file into the folder of manifests",
	} {
		typedLine{line, nil, []string{want}, 2}.check(t)
	}
}

func TestVariablesStandInForFlags(t *testing.T) {
	socket := typedAgent(t)
	t.Setenv("MONOPOD_SOCKET", socket)
	typedLine{"ps -o name", []string{"default/web"}, nil, 0}.check(t)
	typedLine{"ps -o name --socket /nowhere/flag --root /nowhere", nil, []string{"no monopod answers on /nowhere/flag", "not MONOPOD_SOCKET"}, 3}.check(t)
	t.Setenv("MONOPOD_SOCKET", "/nowhere/s")
	t.Setenv("MONOPOD_ROOT", t.TempDir())
	for _, line := range []string{"ps", "top", "images", "exec web -- ls", "logs web", "events", "describe"} {
		typedLine{line, nil, []string{"no monopod answers on /nowhere/s", "MONOPOD_SOCKET"}, 3}.check(t)
	}
	typedLine{"restart web", nil, []string{"the agent does not run, and nothing is restarted", "MONOPOD_SOCKET"}, 3}.check(t)
	t.Setenv("MONOPOD_CONFIG", "/nowhere/c.yaml")
	typedLine{"run", nil, []string{"/nowhere/c.yaml", "MONOPOD_CONFIG"}, 2}.check(t)
	typedLine{"validate x.yaml", nil, []string{"/nowhere/c.yaml", "MONOPOD_CONFIG"}, 2}.check(t)
	t.Setenv("MONOPOD_CONFIG", "")
	t.Setenv("CONTAINER_RUNTIME_ENDPOINT", "tcp://1.2.3.4:5")
	typedLine{"run --manifests /nowhere/m", nil, []string{`CONTAINER_RUNTIME_ENDPOINT "tcp://1.2.3.4:5"`}, 2}.check(t)
	t.Setenv("CONTAINER_RUNTIME_ENDPOINT", "unix:///nowhere/env.sock")
	t.Setenv("MONOPOD_SOCKET", socket)
	typedLine{"exec web -- ls", nil, []string{"/nowhere/env.sock", "CONTAINER_RUNTIME_ENDPOINT"}, 1}.check(t)
	typedLine{"run --help", []string{"$MONOPOD_SOCKET", "$MONOPOD_ROOT", "$CONTAINER_RUNTIME_ENDPOINT", "$MONOPOD_CONFIG"}, nil, 0}.check(t)
}

// A value that a flag cannot have is exit code 2 and says what is expected, in no
// words of a programming language.
func TestWrongValuesOfFlags(t *testing.T) {
	t.Setenv("MONOPOD_SOCKET", "/nowhere/s")
	t.Setenv("MONOPOD_ROOT", t.TempDir())
	for line, want := range map[string]string{
		"wait web --timeout 5x":                                      `--timeout: "5x" is no duration such as 90s or 5m`,
		"wait web --timeout 5":                                       `--timeout: "5" is no duration such as 90s or 5m`,
		"wait web --for condition=":                                  `--for "condition="`,
		"wait -l a=b=c":                                              `-l: "a=b=c" is no selector such as app=web,tier!=db`,
		"ps -l a=b=c":                                                `-l: "a=b=c" is no selector such as app=web,tier!=db`,
		"ps -l ,,":                                                   `-l: ",," is no selector`,
		"logs -l a===":                                               `-l: "a===" is no selector`,
		"ps -o csv":                                                  `-o: "csv": choose wide, name, json or yaml`,
		"ps --runtime-endpoint nonsense":                             `--runtime-endpoint "nonsense": want unix:///path/to/socket`,
		"exec web --runtime-endpoint x -- ls":                        `--runtime-endpoint "x": want unix:///path/to/socket`,
		"ps --no-headers=maybe":                                      `--no-headers: "maybe" is neither true nor false`,
		"logs web --tail few":                                        `--tail: "few" is no whole number`,
		"logs web --tail 99999999999999999999":                       `--tail: "99999999999999999999" is no whole number`,
		"logs web --since soon":                                      `--since: "soon" is no duration such as 90s or 5m`,
		"logs web --since-time noon":                                 `--since-time "noon": write it as in 2026-05-04T12:00:00Z`,
		"restart web --timeout 5x":                                   `--timeout: "5x" is no duration such as 90s or 5m`,
		"top --sort-by name":                                         `--sort-by "name": choose cpu or memory`,
		"top -o xml":                                                 `-o: "xml": choose wide, json or yaml`,
		"once x.yaml --timeout 5x":                                   `--timeout: "5x" is no duration such as 90s or 5m`,
		"run --manifests /m --listen nonsense":                       `--listen "nonsense": not of the form host:port`,
		"run --manifests /m --listen :99999999":                      `--listen ":99999999"`,
		"run --manifests /m --listen 1.2.3.4:nope":                   `--listen "1.2.3.4:nope"`,
		"run --manifests /m --listen 0.0.0.0:0":                      `it needs --tls-cert-file and --tls-private-key-file, and --client-ca-file or --token-file`,
		"run --manifests /m --runtime-endpoint x":                    `--runtime-endpoint "x": want unix:///path/to/socket`,
		"run --manifests /m --node-name a_b":                         `--node-name "a_b"`,
		"run --manifests /m --node-labels a":                         `--node-labels "a": write each label once, as key=value`,
		"run --manifests /m --node-labels =":                         `--node-labels`,
		"run --manifests /m --cgroup-driver x":                       `--cgroup-driver "x": choose auto, cgroupfs, systemd or none`,
		"run --manifests /m --log-level x":                           `--log-level "x": choose`,
		"run --manifests /m --log-format x":                          `--log-format "x": choose text or json`,
		"run --manifests /m --tls-cert-file /c --listen 127.0.0.1:0": `--tls-cert-file and --tls-private-key-file`,
		"once --log-format x --remove /nowhere":                      `--log-format "x": choose text or json`,
		"once x.yaml --until later":                                  `--until "later": there is only ready`,
	} {
		typedLine{line, nil, []string{want, "not strconv", "not parse error", "not time: invalid"}, 2}.check(t)
	}
}

// A command that has one of these flags heeds its variable.
func TestEachFlagWithAVariableHeedsIt(t *testing.T) {
	seen := 0
	for _, k := range App().Commands {
		for _, f := range k.Flags {
			want := command.Variables(f.Names()[0])
			if want == nil {
				continue
			}
			seen++
			if got := f.(cli.DocGenerationFlag).GetEnvVars(); !slices.Equal(got, want) {
				t.Errorf("%s --%s heeds %q, not %q", k.Name, f.Names()[0], got, want)
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d flags have variables", seen)
	}
}
