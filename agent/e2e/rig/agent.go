package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Node is the node name that agents run under, and so the suffix of pod names.
const Node = "node1"

// Agent is monopod with folders of its own, run as a user would.
type Agent struct {
	Binary    string
	Endpoint  string // of the runtime
	Dir       string
	Manifests string // Dir/manifests
	Root      string
	PodLogs   string
	Socket    string
	Listen    string   // TCP address, "" for none
	Cgroups   string   // the cgroup that holds kubepods, no other agent's
	Driver    string   // of cgroups; auto
	Flags     []string // more of them
	Settings  string   // lines of its file of settings, besides those that every agent has
	Log       string
	cgroups   string // that was made for it; "": none
	process   *Process
}

// patience is how long an agent may take to start or to end, on a machine with
// other work to do.
const patience = 2 * time.Minute

// settings are those of every agent. However full the machine's disk is, no agent takes images from
// those that share its runtime.
const settings = "imageGCHighThresholdPercent: 100\n"

// agentDirs begins the names of agents' folders.
const agentDirs = "agent-"

// NewAgent prepares an agent for the rig's runtime; it does not start it. The
// folder for manifests is there and empty, and so is its cgroup.
func (r *Rig) NewAgent(binary string) (*Agent, error) {
	dir, err := os.MkdirTemp(r.Dir, agentDirs)
	if err != nil {
		return nil, fmt.Errorf("prepare agent: %w", err)
	}
	a := &Agent{Binary: binary, Endpoint: r.Runtime.Endpoint, Dir: dir,
		Manifests: filepath.Join(dir, "manifests"), Root: filepath.Join(dir, "root"), PodLogs: filepath.Join(dir, "logs"),
		Socket: filepath.Join(dir, "monopod.sock"), Log: filepath.Join(dir, "monopod.log"),
		Cgroups: r.remains.cgroupRoot(dir), Driver: "auto"}
	if systemdCgroups() { // whose cgroups are all its own
		a.Cgroups = "/"
	} else {
		a.cgroups = a.Cgroups
		if err := makeCgroup(a.cgroups); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(a.Manifests, 0o755); err != nil {
		return nil, fmt.Errorf("prepare agent: %w", err)
	}
	r.agents = append(r.agents, a)
	return a, nil
}

// Args is the command line that Launch runs.
func (a *Agent) Args() []string {
	return append([]string{a.Binary, "run", "--manifests", a.Manifests, "--runtime-endpoint", a.Endpoint, "--root", a.Root,
		"--pod-logs", a.PodLogs, "--node-name", Node, "--listen", a.Listen, "--socket", a.Socket,
		"--cgroup-root", a.Cgroups, "--cgroup-driver", a.Driver, "--config", a.config()}, a.Flags...)
}

func (a *Agent) config() string { return filepath.Join(a.Dir, "config.yaml") }

// WriteSettings writes the agent's file of settings, as Launch does.
func (a *Agent) WriteSettings() error {
	return os.WriteFile(a.config(), []byte(settings+a.Settings), 0o644)
}

// Launch starts the agent and does not wait for anything.
func (a *Agent) Launch() error {
	if a.Running() {
		return errors.New("start agent: it is running")
	}
	if err := a.WriteSettings(); err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	var err error
	a.process, err = StartProcess(a.Log, nil, a.Args()...)
	return err
}

// Start starts the agent and waits until /healthz says ok.
func (a *Agent) Start(ctx context.Context) error {
	if err := a.Launch(); err != nil {
		return err
	}
	return Until(ctx, patience, func() error { return a.Healthy(ctx) })
}

// Healthy returns nil when /healthz says ok.
func (a *Agent) Healthy(ctx context.Context) error {
	if !a.Running() {
		return Final(fmt.Errorf("the agent ended: %w\n%s", a.process.Err(), Tail(a.Log, 20)))
	}
	code, body, err := a.Get(ctx, "/healthz")
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("/healthz: %d %s", code, body)
	}
	return nil
}

// Running says whether the agent was started and has not ended.
func (a *Agent) Running() bool {
	if a.process == nil {
		return false
	}
	select {
	case <-a.process.Done():
		return false
	default:
		return true
	}
}

// Pid returns the agent's process id.
func (a *Agent) Pid() int { return a.process.Pid() }

// Peak returns the most memory that the agent had so far, in bytes; 0: it cannot be read.
func (a *Agent) Peak() (bytes int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.Pid()))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscanf(text, "%d kB", &bytes)
		}
	}
	return bytes << 10
}

// Done is closed when the agent that was started last has ended.
func (a *Agent) Done() <-chan struct{} { return a.process.Done() }

// Wait waits for the agent to end by itself and returns how it did.
func (a *Agent) Wait(limit time.Duration) error {
	select {
	case <-a.process.Done():
		return a.process.Err()
	case <-time.After(limit):
		return fmt.Errorf("the agent still runs after %v", limit)
	}
}

// Kill ends the agent with SIGKILL.
func (a *Agent) Kill() { a.process.Kill() }

// Stop ends the agent with SIGTERM; it leaves its pods running.
func (a *Agent) Stop() error { return a.process.Stop(patience) }

// Close stops the agent if it runs.
func (a *Agent) Close() error {
	if !a.Running() {
		return nil
	}
	return a.Stop()
}

// Write puts a manifest in place at once, by rename.
func (a *Agent) Write(file, manifest string) error {
	tmp := filepath.Join(a.Manifests, "."+file+".tmp")
	if err := os.WriteFile(tmp, []byte(manifest), 0o644); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return os.Rename(tmp, filepath.Join(a.Manifests, file))
}

// Remove deletes a manifest.
func (a *Agent) Remove(file string) error { return os.Remove(filepath.Join(a.Manifests, file)) }

// Clear deletes all manifests.
func (a *Agent) Clear() error {
	var errs []error
	for _, f := range globs(a.Manifests + "/*") {
		errs = append(errs, os.RemoveAll(f))
	}
	return errors.Join(errs...)
}

// Get asks the agent over its unix socket.
func (a *Agent) Get(ctx context.Context, path string) (code int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", a.Socket)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://monopod"+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", fmt.Errorf("ask the agent: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// Pods returns what the agent reports under /pods.
func (a *Agent) Pods(ctx context.Context) ([]v1.Pod, error) {
	code, body, err := a.Get(ctx, "/pods")
	if err != nil {
		return nil, err
	}
	var list v1.PodList
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
		return nil, fmt.Errorf("/pods: %d %q: %w", code, body, err)
	}
	return list.Items, nil
}

// Command is one of monopod's commands, against any agent. When ctx ends it says where it hangs.
func (a *Agent) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, a.Binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// CLI runs one of monopod's commands against this agent and returns what it printed.
func (a *Agent) CLI(ctx context.Context, command string, args ...string) (string, error) {
	return output(a.Command(ctx, append([]string{command, "--socket", a.Socket}, args...)...))
}

// Says is what CLI returns, and below it what the command says on stderr: of pods and
// images that is what is wrong with them.
func (a *Agent) Says(ctx context.Context, command string, args ...string) (string, error) {
	cmd := a.Command(ctx, append([]string{command, "--socket", a.Socket}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	return string(out) + said.String(), err
}
