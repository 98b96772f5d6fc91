// Command words records what runtimes answer when they cannot start a container, run a
// command in one or pull an image, on private runtimes. agent/runtimewords is tested
// against what it wrote.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/e2e/rig"
)

func main() {
	rig.Janitor()
	out := flag.String("out", "agent/runtimewords/testdata", "folder to write to")
	oci := flag.String("oci", "runc", "OCI runtime of PATH that the runtimes are set to, of which the version is noted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	versions := flag.Args()
	if len(versions) == 0 {
		versions = rig.Tested()
	}
	for _, version := range versions {
		if err := record(ctx, version, *oci, *out); err != nil {
			fmt.Fprintf(os.Stderr, "words: %s: %v\n", version, err)
			os.Exit(1)
		}
	}
}

// recording is one file: the answers of a runtime with an OCI runtime.
type recording struct {
	Runtime string   `json:"runtime"` // name and version, as it says
	OCI     string   `json:"oci"`
	Answers []answer `json:"answers"`
}

// answer is what the runtime said to a call that failed; "": it did not fail.
type answer struct {
	Trouble string `json:"trouble"` // what was wrong
	Call    string `json:"call"`    // of the CRI, the one that failed
	Text    string `json:"text"`
}

// record writes the file of one runtime.
func record(ctx context.Context, version, oci, folder string) error {
	r, err := rig.Open(ctx, version)
	if err != nil {
		return err
	}
	s := &session{rig: r}
	err = s.all(ctx)
	_, closed := r.Close(context.WithoutCancel(ctx))
	if err := errors.Join(err, closed); err != nil {
		return err
	}
	if s.OCI, err = ociVersion(oci); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s.recording, "", "  ")
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(s.Runtime+"_"+s.OCI, " ", "-") + ".json"
	fmt.Println("recorded", name)
	return os.WriteFile(filepath.Join(folder, name), append(text, '\n'), 0o644)
}

// ociVersion returns name and version of an OCI runtime: the first line of what it says of itself.
func ociVersion(oci string) (string, error) {
	out, err := exec.Command(oci, "--version").Output()
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(out), "\n")
	version, _, _ := strings.Cut(strings.TrimPrefix(line, oci+" version "), "+")
	return oci + " " + version, nil
}

// session records on one rig.
type session struct {
	rig *rig.Rig
	recording
}

func (s *session) all(ctx context.Context) error {
	v, err := s.rig.CRI.Runtime.Version(ctx, &rt.VersionRequest{})
	if err != nil {
		return err
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(v.RuntimeVersion, "v"), "~")
	version, _, _ = strings.Cut(version, "+")
	s.Runtime = v.RuntimeName + " " + version
	for _, part := range []func(context.Context) error{s.images, s.containers, s.commands, s.sandboxes, s.fullDisk} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// note records the answer to a call.
func (s *session) note(trouble, call string, err error) {
	s.Answers = append(s.Answers, answer{trouble, call, s.clean(err)})
}

// ids are those of sandboxes, containers and layers.
var ids = regexp.MustCompile(`[0-9a-f]{32,64}`)

// stamps are the times of lines that programs log, and randoms the random numbers in names of files.
var (
	stamps  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:\d\d)`)
	randoms = regexp.MustCompile(`([a-z])\d{6,}`)
)

// clean returns an error's text without what differs from one recording to the next.
func (s *session) clean(err error) string {
	if err == nil {
		return ""
	}
	text := strings.NewReplacer(s.rig.Dir, "/rig", s.rig.Registry.Addr, "127.0.0.1:5000").Replace(rig.Words(err))
	text = randoms.ReplaceAllString(ids.ReplaceAllString(text, "ID"), "${1}1")
	return stamps.ReplaceAllString(text, "2026-01-02T03:04:05Z")
}

// images pulls what is not there.
func (s *session) images(ctx context.Context) error {
	s.note("no such repository", "PullImage", s.rig.CRI.Pull(ctx, "registry.test/nosuch:1"))
	s.note("no such tag", "PullImage", s.rig.CRI.Pull(ctx, "registry.test/busybox:nosuch"))
	return s.rig.CRI.Pull(ctx, rig.Busybox)
}

// containers tries to start containers that cannot be started.
func (s *session) containers(ctx context.Context) error {
	plain := filepath.Join(s.rig.Dir, "plain")
	if err := os.WriteFile(plain, []byte("no program\n"), 0o644); err != nil {
		return err
	}
	pod := &rig.BarePod{Namespace: "words", Name: "containers", HostNetwork: true, Logs: filepath.Join(s.rig.Dir, "words")}
	if err := pod.StartSandbox(ctx, s.rig.CRI); err != nil {
		return err
	}
	withPlain := func(path string) func(*rt.ContainerConfig) {
		return func(c *rt.ContainerConfig) {
			c.Command = []string{path}
			c.Mounts = []*rt.Mount{{HostPath: plain, ContainerPath: "/plain"}}
		}
	}
	for _, row := range []struct {
		trouble string
		config  func(*rt.ContainerConfig)
	}{
		{"missing command", withPlain("nosuch")},
		{"missing path", withPlain("/nosuch/program")},
		{"a folder", withPlain("/etc")},
		{"a file that is not executable", withPlain("/plain")},
		{"unknown user", func(c *rt.ContainerConfig) { c.Linux.SecurityContext.RunAsUsername = "nosuch" }},
		{"memory limit too low", func(c *rt.ContainerConfig) { c.Linux.Resources.MemoryLimitInBytes = 400 << 10 }},
		{"mount of a path that is not there", func(c *rt.ContainerConfig) {
			c.Mounts = []*rt.Mount{{HostPath: filepath.Join(s.rig.Dir, "nosuch"), ContainerPath: "/data"}}
		}},
		{"mount of a file on a folder", func(c *rt.ContainerConfig) {
			c.Mounts = []*rt.Mount{{HostPath: plain, ContainerPath: "/etc"}}
		}},
	} {
		call, err := pod.TryContainer(ctx, s.rig.CRI, row.config)
		s.note(row.trouble, call, err)
	}
	return s.rig.CRI.RemoveAll(ctx, pod.Namespace)
}

// commands tries to run commands in a container that runs.
func (s *session) commands(ctx context.Context) error {
	pod := &rig.BarePod{Namespace: "words", Name: "commands", HostNetwork: true, Logs: filepath.Join(s.rig.Dir, "words"), Command: []string{"sleep", "1000"}}
	if err := pod.Start(ctx, s.rig.CRI); err != nil {
		return err
	}
	for _, row := range []struct {
		trouble string
		command []string
	}{
		{"missing command", []string{"nosuch"}},
		{"missing path", []string{"/nosuch/program"}},
		{"a folder", []string{"/etc"}},
		{"a file that is not executable", []string{"/proc/version"}},
	} {
		s.note(row.trouble, "ExecSync", s.rig.CRI.Exec(ctx, pod.Container, row.command...))
	}
	return s.rig.CRI.RemoveAll(ctx, pod.Namespace)
}

// sandboxes tries to start a sandbox whose pod has too little memory.
func (s *session) sandboxes(ctx context.Context) error {
	parent, err := s.rig.LimitedCgroup("words", 1<<20)
	if err != nil {
		return err
	}
	pod := &rig.BarePod{Namespace: "words", Name: "sandboxes", HostNetwork: true, Logs: filepath.Join(s.rig.Dir, "words"), Cgroup: parent}
	s.note("memory limit of the pod too low", "RunPodSandbox", pod.StartSandbox(ctx, s.rig.CRI))
	return s.rig.CRI.RemoveAll(ctx, pod.Namespace)
}

// fullDisk makes the runtime's folder one that is full, and tries to make a container and to pull
// an image there.
func (s *session) fullDisk(ctx context.Context) error {
	root := filepath.Join(s.rig.Runtime.Dir, "root")
	if err := s.rig.Runtime.Stop(); err != nil {
		return err
	}
	_ = syscall.Unmount(filepath.Join(root, "overlay"), syscall.MNT_DETACH) // CRI-O's own
	if err := syscall.Mount("words", root, "tmpfs", 0, "size=32m"); err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	defer func() { _ = syscall.Unmount(root, syscall.MNT_DETACH) }()
	if err := s.rig.Runtime.Start(ctx); err != nil {
		return err
	}
	pod := &rig.BarePod{Namespace: "words", Name: "full", HostNetwork: true, Logs: filepath.Join(s.rig.Dir, "words"), Command: []string{"sleep", "1000"}}
	if err := s.rig.CRI.Pull(ctx, rig.Busybox); err != nil {
		return err
	}
	if err := pod.StartSandbox(ctx, s.rig.CRI); err != nil {
		return err
	}
	if err := fill(filepath.Join(root, "filling")); err != nil {
		return err
	}
	call, err := pod.TryContainer(ctx, s.rig.CRI, func(*rt.ContainerConfig) {})
	s.note("full disk", call, err)
	s.note("full disk", "PullImage", s.rig.CRI.Pull(ctx, rig.Busybox2))
	if err := os.Remove(filepath.Join(root, "filling")); err != nil {
		return err
	}
	if err := s.rig.CRI.RemoveAll(ctx, pod.Namespace); err != nil {
		return err
	}
	if err := s.rig.Runtime.Stop(); err != nil {
		return err
	}
	_ = syscall.Unmount(filepath.Join(root, "overlay"), syscall.MNT_DETACH)
	return nil
}

// fill writes a file until the disk is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 4096)
	for {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
