package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/client"
	"monopod/agent/cli/logs"
	"monopod/agent/cli/support"
	"monopod/agent/config"
	"monopod/agent/doctor"
	"monopod/agent/managed"
	"monopod/agent/print"
	"monopod/agent/status"
)

// examined is a machine and its agent, of which an archive is made.
type examined struct {
	cfg     config.Config
	source  client.Source
	now     time.Time
	known   *client.Known // its pods are without the values of their variables
	failed  error         // why nothing is known
	node    string
	secrets support.Secrets
}

// partTimeout bounds the collection of each part: a runtime or a disk may not answer.
const partTimeout = 15 * time.Second

func newExamined(ctx context.Context, cfg config.Config) *examined {
	cfg = besideAgent(ctx, cfg)
	x := &examined{cfg: cfg, source: client.Source{Socket: cfg.Socket, Root: cfg.Root}, now: time.Now(), node: cfg.NodeName}
	x.known, x.failed = x.source.All(ctx)
	if x.known == nil {
		x.known = &client.Known{}
	}
	for k := range x.known.Pods {
		p := &x.known.Pods[k]
		x.node = cmp.Or(p.Spec.NodeName, x.node)
		x.secrets.AddPod(p)
		status.HideValues(p)
	}
	x.addProblems()
	objects, _ := checkpoint.SavedObjects(cfg.Root) // none is known, and so none is quoted by a report
	for _, o := range objects {
		x.secrets.AddObject(o)
	}
	for _, values := range cfg.ManifestURLHeader {
		for _, value := range values {
			x.secrets.Add(string(value))
		}
	}
	return x
}

// addProblems adds the values that problems with the manifests quote.
func (x *examined) addProblems() {
	m := x.known.Manifests
	for _, p := range slices.Concat(m.Problems, m.Settings, m.Reports) {
		x.secrets.AddProblem(p)
	}
	for _, f := range slices.Concat(m.Files, m.Leaving) {
		for _, p := range f.Problems {
			x.secrets.AddProblem(p)
		}
	}
}

// collected is a part that is to be collected.
type collected struct {
	name, what string
	text       func(x *examined, ctx context.Context, w io.Writer) error
}

var collectedParts = []collected{
	{"version.txt", "the version of this monopod", func(_ *examined, _ context.Context, w io.Writer) error {
		return PrintVersion(w, "", Version())
	}},
	{"doctor.txt", "what `monopod doctor` says of this machine", (*examined).doctor},
	{"ps.txt", "the pods and their problems", (*examined).ps},
	{"files.txt", "the manifests and their problems", (*examined).files},
	{"describe.txt", "all that is known of each pod", (*examined).describe},
	{"node.txt", "all that is known of the node", func(x *examined, ctx context.Context, w io.Writer) error {
		return Describe(ctx, w, DescribeOptions{Options: x.options(w), Pods: []string{"node"}})
	}},
	{"events.txt", "the events", func(x *examined, ctx context.Context, w io.Writer) error {
		return Events(ctx, w, EventsOptions{Options: x.options(w)})
	}},
	{"images.txt", "the images", func(x *examined, ctx context.Context, w io.Writer) error {
		return Images(ctx, w, x.options(w))
	}},
	{"pods.json", "the pods with their status, as a v1 PodList", (*examined).pods},
	{"manifests.json", "the report on the manifests", (*examined).manifests},
	{"settings.yaml", "the settings that this command was given", func(x *examined, _ context.Context, w io.Writer) error {
		return print.As(w, "yaml", x.cfg.Configz())
	}},
	{"running-settings.json", "the settings of the agent that runs", answer("/configz")},
	{"runtime.json", "the state of the runtime, as the agent sees it", answer("/runtime")},
	{"metrics.txt", "the metrics of the agent", answer("/metrics")},
	{"agent.log", "the last of the agent's log in the journal", (*examined).journal},
}

// parts collects all parts.
func (x *examined) parts(ctx context.Context) (all []support.Part) {
	for _, c := range collectedParts {
		var text support.Tail
		ctx, cancel := context.WithTimeout(ctx, partTimeout)
		err := c.text(x, ctx, &text)
		cancel()
		if errors.Is(err, client.ErrDown) {
			err = nil // the text says so
		}
		all = append(all, text.Part(c.name, c.what, err))
	}
	return slices.Concat(all, x.containerLogs(ctx), configFiles("/"), x.managedRuntime())
}

// options are those of a command whose notes stand above its output.
func (x *examined) options(w io.Writer) Options {
	return Options{Source: x.source, Format: print.Format{Output: "", Now: x.now}, Err: w}
}

func (x *examined) ps(ctx context.Context, w io.Writer) error {
	o := x.options(w)
	o.Output = "wide"
	return Ps(ctx, w, o)
}

func (x *examined) files(ctx context.Context, w io.Writer) error {
	o := x.options(w)
	o.Files = true
	return Ps(ctx, w, o)
}

func (x *examined) doctor(ctx context.Context, w io.Writer) error {
	m, err := machine(ctx, x.cfg)
	if err != nil {
		return err
	}
	defer m.Runtime.Close()
	return doctor.Print(w, "", doctor.Examine(ctx, m))
}

func (x *examined) describe(ctx context.Context, w io.Writer) error {
	if x.failed != nil {
		return x.failed
	}
	return describe(ctx, w, x.known, DescribeOptions{Options: x.options(w)})
}

func (x *examined) pods(_ context.Context, w io.Writer) error {
	if x.failed != nil {
		return x.failed
	}
	list := v1.PodList{Items: x.known.Pods}
	list.APIVersion, list.Kind = "v1", "PodList"
	return print.As(w, "json", list)
}

func (x *examined) manifests(_ context.Context, w io.Writer) error {
	if x.failed != nil {
		return x.failed
	}
	return print.As(w, "json", x.known.Manifests)
}

// answer is what the agent answers for a path.
func answer(path string) func(*examined, context.Context, io.Writer) error {
	return func(x *examined, ctx context.Context, w io.Writer) error {
		text, err := client.Get(ctx, x.cfg.Socket, path)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
}

// journalLines is how much of the agent's log is taken.
const journalLines = "5000"

// journal prints the end of the agent's log, where systemd keeps it.
func (x *examined) journal(ctx context.Context, w io.Writer) error {
	c := exec.CommandContext(ctx, "journalctl", "--unit", "monopod", "--lines", journalLines, "--no-pager", "--output", "short-iso")
	c.Stdout, c.WaitDelay = w, time.Second
	if err := c.Run(); err != nil {
		return fmt.Errorf("journalctl: %w", err)
	}
	return nil
}

// logTail is how many lines of each log are taken.
var logTail int64 = 500

// containerLogs returns the last lines of the containers that are not well, and of what ran before.
func (x *examined) containerLogs(ctx context.Context) (all []support.Part) {
	for k := range x.known.Pods {
		p := &x.known.Pods[k]
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if !isUnwell(&c) {
				continue
			}
			all = append(all, x.log(ctx, p, c.Name, false))
			if c.RestartCount > 0 && c.State.Waiting == nil { // what waits has logged nothing yet: that was the previous attempt
				all = append(all, x.log(ctx, p, c.Name, true))
			}
		}
	}
	return all
}

// isUnwell reports whether a container failed, restarted, or is not ready.
func isUnwell(c *v1.ContainerStatus) bool {
	if ended := c.State.Terminated; ended != nil {
		return ended.ExitCode != 0 || c.RestartCount > 0
	}
	return !c.Ready || c.RestartCount > 0
}

func (x *examined) log(ctx context.Context, p *v1.Pod, container string, previous bool) support.Part {
	name, what := p.Namespace+"_"+p.Name+"_"+container, "the last of the log of container "+container+" of pod "+p.Namespace+"/"+p.Name
	if previous {
		name, what = name+".previous", what+", of its previous attempt"
	}
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	var text support.Tail
	prefix := false
	err := logs.Print(ctx, &text, logs.Options{Source: x.source, PodLogs: x.cfg.PodLogs, Pod: p.Name, Namespace: p.Namespace, Containers: []string{container},
		Previous: previous, Timestamps: true, Tail: &logTail, Prefix: &prefix, Notes: io.Discard})
	return text.Part("logs/"+name+".log", what, err)
}

// configPaths are where runtimes and networks are configured.
var configPaths = []string{
	"etc/containerd/config.toml", "etc/containerd/conf.d/*.toml", "etc/containerd/certs.d/*/hosts.toml",
	"etc/crio/crio.conf", "etc/crio/crio.conf.d/*", "etc/containers/registries.conf", "etc/containers/registries.conf.d/*", "etc/containers/storage.conf",
	"etc/cni/net.d/*", "etc/resolv.conf", "etc/os-release",
}

// configFiles returns the files of configuration below root, without what may be a secret.
func configFiles(root string) (all []support.Part) {
	for _, pattern := range configPaths {
		paths, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, path := range paths {
			name := strings.TrimPrefix(path, strings.TrimSuffix(root, "/")+"/")
			all = append(all, configFile(path, "machine/"+name, "/"+name))
		}
	}
	return all
}

// configFile returns a file without what may be a secret.
func configFile(path, name, what string) support.Part {
	text, err := os.ReadFile(path)
	return support.Part{Name: name, What: what, Text: support.HideConfig(string(text)), Err: err}
}

// managedRuntime returns the configuration of the runtime that the agent runs, and the ends of its logs.
func (x *examined) managedRuntime() (all []support.Part) {
	dir := filepath.Join(x.cfg.Root, managed.Folder)
	for _, pattern := range []string{"config.toml", "net.d/*"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range paths {
			all = append(all, configFile(path, "managed"+strings.TrimPrefix(path, dir), path))
		}
	}
	for _, name := range []string{"log.1", "log"} { // the former one says why one that died did
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		all = append(all, managedLog(f, name, f.Name()))
		f.Close()
	}
	return all
}

// managedLog returns the end of a runtime's log. Each of its lines is hidden alone: a bracket in one
// does not hide what follows.
func managedLog(f io.Reader, name, path string) support.Part {
	var end support.Tail
	_, err := io.Copy(&end, f)
	p := end.Part("managed/"+name, "the last of "+path, err)
	var text strings.Builder
	for line := range strings.Lines(p.Text) {
		content := strings.TrimSuffix(line, "\n")
		text.WriteString(support.HideConfig(content) + line[len(content):])
	}
	p.Text = text.String()
	return p
}
