package stats

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"monopod/cri"
	"monopod/cri/critest"
)

var update = flag.Bool("update", false, "write what is told to testdata")

// plant makes the files of testdata/<name>.tree and returns the machine they are of.
func plant(t testing.TB, name string) Host {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".tree"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for k, part := range strings.Split("\n"+string(b), "\n== ") {
		if path, text, _ := strings.Cut(part, "\n"); k > 0 {
			put(t, dir, path, text+"\n")
		}
	}
	link := filepath.Join(dir, "sys/dev/block/8:0")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../devices/pci0/block/sda", link); err != nil {
		t.Fatal(err)
	}
	return Host{Proc: filepath.Join(dir, "proc"), Sys: filepath.Join(dir, "sys"), Cgroup: filepath.Join(dir, "cgroup")}
}

func put(t testing.TB, dir, path, text string) {
	t.Helper()
	path = filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// webPod is what the trees are about.
const webPod = `
metadata: {name: web-n, namespace: default, uid: abc}
spec: {containers: [{name: app, image: "web:1"}, {name: waiting, image: "web:1"}], volumes: [{name: data, emptyDir: {}}]}
status:
  startTime: "1999-12-31T23:00:00Z"
  containerStatuses:
  - {name: app, image: "registry.example/web:1", containerID: "containerd://c1c1", state: {running: {startedAt: "1999-12-31T23:00:05Z"}}}
  - {name: waiting, state: {waiting: {reason: CrashLoopBackOff}}}
`

func parsePod(t testing.TB, text string) *v1.Pod {
	t.Helper()
	p := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// looker returns a collector of a machine with the pods, whose cgroups are as the
// driver names them.
func looker(t testing.TB, h Host, r *critest.Runtime, driver string, pods ...*v1.Pod) *Collector {
	names := map[string][2]string{
		"systemd":  {"/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice"},
		"cgroupfs": {"/kubepods", "/kubepods/burstable/pod%s"},
	}[driver]
	root := t.TempDir()
	return New(Config{Host: h, CRI: cri.New(r.Conn()), Node: "n", Booted: time.Date(1999, 12, 31, 22, 0, 0, 0, time.UTC),
		Root: root, PodLogs: filepath.Join(root, "logs"), Log: slog.New(slog.DiscardHandler),
		Pods:    func() []*v1.Pod { return pods },
		AllPods: func() string { return names[0] },
		Cgroup: func(p *v1.Pod) string {
			if driver == "none" {
				return ""
			}
			return fmt.Sprintf(names[1], p.UID)
		},
	})
}

// runPod runs a pod of one container in the runtime and returns its container's id.
func runPod(t *testing.T, r *critest.Runtime, name, uid string) string {
	t.Helper()
	c, ctx := cri.New(r.Conn()), context.Background()
	pod := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: name, Namespace: "default", Uid: uid}}
	r.AddImage("web:1")
	sandbox, err := c.RunSandbox(ctx, pod, "")
	if err != nil {
		t.Fatal(err)
	}
	id, err := c.CreateContainer(ctx, sandbox, &rt.ContainerConfig{Metadata: &rt.ContainerMetadata{Name: "app"}, Image: &rt.ImageSpec{Image: "web:1"}}, pod)
	if err == nil {
		err = c.StartContainer(ctx, id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// golden compares got with testdata/<name>.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}
