package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/cli/command"
	"monopod/agent/cli/diff"
	"monopod/agent/config"
	"monopod/agent/hold"
	"monopod/agent/objects"
	"monopod/agent/outlook"
	"monopod/agent/server"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
)

// What the agent of these tests runs.
const (
	diffWeb = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - name: app
    image: reg.io/web:1
    env: [{name: MODE, value: fast}, {name: PASSWORD, value: hunter2}]
    resources: {limits: {cpu: "1", memory: 268435456}}
  - {name: side, image: "reg.io/side:1"}
`
	diffAPI = `apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 1
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: c, image: "reg.io/api:1"}]}
`
	diffOld = "apiVersion: v1\nkind: Pod\nmetadata: {name: old}\nspec: {containers: [{name: c, image: \"reg.io/old:1\"}]}\n"
	diffURL = "apiVersion: v1\nkind: Pod\nmetadata: {name: far}\nspec: {containers: [{name: c, image: \"reg.io/far:1\"}]}\n"
)

// diffRig is an agent with a folder of manifests, and a folder of other ones beside it.
type diffRig struct {
	t            *testing.T
	own, other   string
	socket, root string
	store        *status.Store
	objects      []*manifests.Object // of the agent
	wishes       hold.State          // of its owner
	asked        outlook.Asked       // by the last command
	out          bytes.Buffer
}

func newDiffRig(t *testing.T, o manifests.Options, cfg func(*config.Config)) *diffRig {
	r := &diffRig{t: t, own: t.TempDir(), other: t.TempDir(), root: t.TempDir()}
	r.store = clitest.Store(t, filepath.Join(r.root, "status"))
	for name, text := range map[string]string{"web.yaml": diffWeb, "api.yaml": diffAPI, "old.yaml": diffOld, "far.yaml": diffURL} {
		path := r.write(r.own, name, text)
		pods, problems := manifests.Decode(path, []byte(text), o)
		if len(pods) != 1 {
			t.Fatal(problems)
		}
		p := pods[0].Pod
		if name == "far.yaml" {
			p.Annotations["kubernetes.io/config.source"] = "http"
			os.Remove(path)
		}
		status.SetProblems(p, []string{"the runtime is slow"})
		r.store.SetPod(p.Namespace+"/"+p.Name, p)
	}
	r.store.SetManifests(status.Manifests{Dir: r.own})
	c := server.Config{Store: r.store, Requests: []server.Request{server.Outlook(r.outlook)}}
	if cfg != nil {
		settings := config.Default()
		cfg(&settings)
		c.Settings = func() map[string]any { return settings.Configz() }
	}
	r.socket = clitest.Serve(t, c)
	return r
}

// outlook answers as an agent with the reported pods, and with nothing else that is in the way.
func (r *diffRig) outlook(_ context.Context, request io.Reader) (any, error) {
	r.asked = outlook.Asked{}
	err := json.NewDecoder(request).Decode(&r.asked)
	if err != nil {
		return nil, err
	}
	k := &client.Known{}
	for _, p := range r.store.Pods() {
		k.Pods = append(k.Pods, *p)
	}
	n := diff.Offline(k, r.wishes, diff.Rules{Suffix: "-edge7"}, time.Now())
	n.World.Limits, n.Objects = func(*manifests.Pod) update.Limits { return update.Limits{} }, objects.NewSet(r.objects)
	return n.Of(&r.asked), nil
}

func (r *diffRig) write(dir, name, text string) string {
	r.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// run runs diff and writes down what it says, without the names of folders.
func (r *diffRig) run(args ...string) string {
	r.t.Helper()
	var b bytes.Buffer
	runTable(r.t, &b, append([]string{"diff", "--socket", r.socket, "--root", r.root}, args...)...)
	text := strings.NewReplacer(r.own, "OWN", r.other, "OTHER", r.socket, "SOCKET", r.root, "ROOT").Replace(b.String())
	r.out.WriteString(text)
	return text
}

func edge(t *testing.T) *diffRig {
	return newDiffRig(t, manifests.Options{NodeName: "edge7", NameSuffix: true}, func(c *config.Config) { c.NodeName = "edge7" })
}

func TestDiffSaysWhatBecomesOfPods(t *testing.T) {
	r := edge(t)
	r.write(r.other, "a-web.yaml", strings.NewReplacer("web:1", "web:2", "hunter2", "hunter3", "{app: web}", "{app: web, tier: front}").Replace(diffWeb))
	r.write(r.other, "b-api.yaml", strings.Replace(diffAPI, "metadata: {name: api}", "# a comment\nmetadata:\n  name: api", 1))
	r.write(r.other, "c-new.yaml", strings.Replace(diffOld, "name: old", "name: new", 1))
	r.run(r.other)
	r.run("--prune", r.other)
	r.run(r.own)
	r.run(filepath.Join(r.own, "web.yaml"))
	r.run("-o", "yaml", r.other)
	r.run("-o", "json", filepath.Join(r.other, "b-api.yaml"))
	os.Remove(filepath.Join(r.own, "old.yaml"))
	r.run(r.own)
	shown(t, "diff", r.out.String())
	link := filepath.Join(r.other, "link")
	if err := os.Symlink(r.own, link); err != nil {
		t.Fatal(err)
	}
	if text := r.run(link); !strings.Contains(text, "removed     default/old-edge7") {
		t.Errorf("by a link it says\n%s", text)
	}
}

// wasMade reports a pod of which a container was made.
func (r *diffRig) wasMade(pod string) {
	r.t.Helper()
	p, reported := r.store.Pod(pod)
	if !reported {
		r.t.Fatal("no pod")
	}
	p = p.DeepCopy()
	p.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "app", ContainerID: "containerd://1"}}}
	r.store.SetPod(pod, p)
}

// What the agent says is told, by its settings and records; it is asked once, and on the socket.
func TestDiffAsksTheAgent(t *testing.T) {
	r := edge(t)
	r.wasMade("default/web-edge7")
	r.wishes.Held = map[string]hold.Hold{"default/web-edge7": {Reason: "audit"}}
	r.write(r.other, "web.yaml", strings.Replace(diffWeb, "web:1", "web:2", 1))
	text := r.run("--prune", r.other)
	const want = `restarted   default/web-edge7 (OTHER/web.yaml)
    because: spec.containers[app].image
    in place: container app restarts
    waits: held: audit (` + "`monopod release web`" + ` ends it)
    spec.containers[app].image: "reg.io/web:1" -> "reg.io/web:2"
`
	if !strings.Contains(text, want) || !strings.Contains(text, "removed     default/old-edge7\n") || strings.Contains(text, "removed     default/far-edge7") {
		t.Errorf("it says\n%s", text)
	}
	if len(r.asked.Pods) != 1 || !r.asked.Whole || r.asked.Pods[0].Digest == "" {
		t.Errorf("it asked %+v", r.asked)
	}
	r.run(r.other)
	if r.asked.Whole {
		t.Error("a folder beside the agent's is taken for all")
	}
}

func TestDiffSaysWhatTheAgentCannotAnswer(t *testing.T) {
	r := edge(t)
	r.socket = clitest.Serve(t, server.Config{Store: clitest.Store(t, filepath.Join(t.TempDir(), "status"))})
	path := filepath.Join(r.own, "web.yaml")
	if text := r.run("--node-name", "edge7", path); !strings.Contains(text, "is of a version that cannot do this") || !strings.HasSuffix(text, "[2]\n") {
		t.Errorf("of an older agent it says\n%s", text)
	}
	r.socket = clitest.Serve(t, server.Config{Store: clitest.Store(t, filepath.Join(t.TempDir(), "status")),
		Requests: []server.Request{server.Outlook(func(context.Context, io.Reader) (any, error) { return nil, errors.New("panic: poison") })}})
	if text := r.run("--node-name", "edge7", path); !strings.Contains(text, "panic: poison") || !strings.HasSuffix(text, "[2]\n") {
		t.Errorf("of one that went wrong it says\n%s", text)
	}
}

func TestDiffTellsNoSecrets(t *testing.T) {
	r := edge(t)
	path := r.write(r.other, "web.yaml", strings.ReplaceAll(diffWeb, "hunter2", "hunter3"))
	for _, output := range [][]string{nil, {"-o", "json"}, {"-o", "yaml"}} {
		if text := r.run(append(output, path)...); strings.Contains(text, "hunter") || !strings.Contains(text, "env[PASSWORD]") {
			t.Errorf("%v: it says\n%s", output, text)
		}
	}
}

// What means the same changes nothing.
func TestDiffSaysWhatIsOnlyWrittenOtherwise(t *testing.T) {
	r := edge(t)
	text := r.run(r.write(r.other, "web.yaml", strings.Replace(diffWeb, "268435456", "256Mi", 1)))
	if !strings.Contains(text, "unchanged   default/web-edge7") || strings.HasSuffix(text, "[1]\n") {
		t.Errorf("it says\n%s", text)
	}
}

// diff goes by the settings of the agent, unless it is told others.
func TestDiffNamesPodsAsTheAgentDoes(t *testing.T) {
	plain := manifests.Options{NodeName: "edge7"}
	suffix := manifests.Options{NodeName: "edge7", NameSuffix: true}
	for _, row := range []struct {
		name    string
		options manifests.Options
		cfg     func(*config.Config)
		args    []string
		want    string
	}{
		{"said", suffix, func(c *config.Config) { c.NodeName = "edge7" }, nil, "unchanged   default/web-edge7"},
		{"said without a suffix", plain, func(c *config.Config) { c.NodeName, c.PodNameSuffix = "edge7", false }, nil, "unchanged   default/web "},
		{"by the pods", suffix, nil, nil, "unchanged   default/web-edge7"},
		{"by the pods without a suffix", plain, nil, nil, "unchanged   default/web "},
		{"as told", suffix, func(c *config.Config) { c.NodeName = "edge7" }, []string{"--node-name", "edge8"}, "new         default/web-edge8"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newDiffRig(t, row.options, row.cfg)
			if text := r.run(append(row.args, filepath.Join(r.own, "web.yaml"))...); !strings.Contains(text, row.want) {
				t.Errorf("it lacks %q:\n%s", row.want, text)
			}
		})
	}
}

func TestDiffWithoutAnAgentGoesByTheLastReport(t *testing.T) {
	r := edge(t)
	r.wasMade("default/web-edge7")
	if err := r.store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.socket = "/nowhere/s"
	text := r.run(filepath.Join(r.own, "web.yaml"))
	if !strings.Contains(text, "unchanged   default/web-edge7") || !strings.Contains(text, "the agent does not run") || strings.Contains(text, "invalid") || strings.HasSuffix(text, "]\n") {
		t.Errorf("it says\n%s", text)
	}
	path := r.write(r.other, "web.yaml", strings.ReplaceAll(diffWeb, "hunter2", "hunter3"))
	if text := r.run(path); !strings.Contains(text, "env[PASSWORD]: changed") || !strings.HasSuffix(text, "[1]\n") {
		t.Errorf("it says\n%s", text)
	}
	r.holdsOnDisk("default/web-edge7")
	if text := r.run(path); !strings.Contains(text, "    waits: held: audit (`monopod release web` ends it)\n") {
		t.Errorf("of a held pod it says\n%s", text)
	}
	r.root = t.TempDir()
	if text := r.run(path); !strings.Contains(text, "no monopod answers on SOCKET") || !strings.HasSuffix(text, "[2]\n") {
		t.Errorf("without a report it says\n%s", text)
	}
}

// holdsOnDisk writes what an agent leaves of a held pod.
func (r *diffRig) holdsOnDisk(pod string) {
	r.t.Helper()
	err := os.WriteFile(filepath.Join(r.root, "holds.json"), []byte(`{"held":{"`+pod+`":{"reason":"audit"}}}`), 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestDiffRefusesWhatValidateRefuses(t *testing.T) {
	r := edge(t)
	bad := r.write(r.other, "bad.yaml", strings.Replace(diffOld, "image:", "imagee:", 1))
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{bad}, `OTHER/bad.yaml:4:31: spec.containers[0].imagee: unknown field "imagee"`},
		{[]string{filepath.Join(r.own, "web.yaml"), bad}, "bad.yaml:4"},
		{[]string{filepath.Join(r.other, "none.yaml")}, "no such file"},
		{nil, "diff what?"},
		{[]string{"--prune", filepath.Join(r.own, "web.yaml")}, "--prune needs a folder"},
		{[]string{"-o", "wide", bad}, "choose json or yaml"},
	} {
		if text := r.run(row.args...); !strings.Contains(text, row.want) || !strings.HasSuffix(text, "[2]\n") || strings.Contains(text, "default/web") {
			t.Errorf("%v: it says\n%s", row.args, text)
		}
	}
}

// A warning does not hinder.
func TestDiffWarnsAndGoesOn(t *testing.T) {
	r := edge(t)
	path := r.write(r.other, "web.yaml", strings.Replace(diffWeb, "reg.io/side:1", "reg.io/UPPER:1", 1))
	var out, errs bytes.Buffer
	err := execute(t.Context(), nil, &out, &errs, "diff", "--socket", r.socket, "-o", "json", path)
	var report struct {
		Pods    []struct{ Pod, Action string }
		Changes int
	}
	if json.Unmarshal(out.Bytes(), &report) != nil || report.Changes != 1 || len(report.Pods) != 1 || report.Pods[0].Action != "restarted" {
		t.Errorf("it printed %s", out.String())
	}
	if !strings.Contains(errs.String(), "warning: ") || command.ExitCode(err) != 1 {
		t.Errorf("code %d, warned %q", command.ExitCode(err), errs.String())
	}
}

func TestDiffReadsStandardInput(t *testing.T) {
	r := edge(t)
	var out, errs bytes.Buffer
	err := execute(t.Context(), strings.NewReader(diffWeb), &out, &errs, "diff", "--socket", r.socket, "-")
	if want := "unchanged   default/web-edge7 (-)\n1 unchanged\n"; err != nil || out.String() != want {
		t.Errorf("%v, it says %q and %q", err, out.String(), errs.String())
	}
}

// A version that a former monopod accepted is spared by the agent, which runs it, and by
// diff; every other version with the same error is refused.
func TestDiffSparesWhatTheAgentAccepted(t *testing.T) {
	r := edge(t)
	options := manifests.Options{NodeName: "edge7", NameSuffix: true, IsAccepted: func(*manifests.Pod) bool { return true }}
	text := strings.Replace(diffOld, "{name: old}", "{name: old, annotations: {monopod.update-helth: 30s}}", 1)
	pods, problems := manifests.Decode(r.write(r.own, "old.yaml", text), []byte(text), options)
	if len(pods) != 1 {
		t.Fatal(problems)
	}
	spared := pods[0].Pod
	spared.Annotations[status.AnnHeld] = "held: audit"
	status.SetProblems(spared, []string{"the runtime is slow"})
	r.store.SetPod("default/old-edge7", spared)
	if said := r.run(r.own); !strings.Contains(said, "unchanged   default/old-edge7") || !strings.Contains(said, "monopod.update-health") || strings.Contains(said, "refused") {
		t.Errorf("of the folder it says\n%s", said)
	}
	if said := r.run(r.write(r.other, "old.yaml", strings.Replace(text, "old:1", "old:2", 1))); !strings.Contains(said, "nothing was compared") {
		t.Errorf("of another version it says\n%s", said)
	}
	spared.DeletionTimestamp = new(metav1.Now())
	r.store.SetPod("default/old-edge7", spared)
	if said := r.run(r.own); !strings.Contains(said, "nothing was compared") {
		t.Errorf("of a version that leaves it says\n%s", said)
	}
}
