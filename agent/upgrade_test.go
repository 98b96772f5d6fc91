package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/node"
	"monopod/cri/critest"
)

// olderUID is a uid as an older build computed it.
const olderUID = "0123456789abcdef0123456789abcdef"

// inCheckpoint rewrites the only checkpoint below root, which is not sealed then.
func inCheckpoint(t *testing.T, root string, change func(map[string]any)) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(root, "pods", "*", "pod.json"))
	if len(files) != 1 {
		t.Fatalf("checkpoints: %v", files)
	}
	b, err := os.ReadFile(files[0])
	noErr(t, err)
	c := map[string]any{}
	noErr(t, json.Unmarshal(b, &c))
	change(c)
	b, err = json.Marshal(c)
	noErr(t, err)
	noErr(t, os.WriteFile(files[0], b, 0o600))
}

// asAnOlderBuild rewrites the only checkpoint below root as a build would have
// written it that knows fewer defaults and computes other digests.
func asAnOlderBuild(t *testing.T, root string) {
	t.Helper()
	inCheckpoint(t, root, func(c map[string]any) {
		spec := c["pod"].(map[string]any)["spec"].(map[string]any)
		container := spec["containers"].([]any)[0].(map[string]any)
		for field, in := range map[string]map[string]any{"enableServiceLinks": spec, "schedulerName": spec,
			"securityContext": spec, "terminationMessagePolicy": container} {
			if in[field] == nil {
				t.Fatalf("no %s in %v", field, c)
			}
			delete(in, field)
		}
		c["digest"] = strings.Repeat("0", 32)
	})
}

// folderAgent is an agent on a manifest folder and a runtime behind a real socket.
func folderAgent(t *testing.T, r *critest.Runtime, dir, root string) *oneRun {
	t.Helper()
	cfg := config.Default()
	cfg.Manifests, cfg.NodeName, cfg.Endpoint = []string{dir}, "n", r.Endpoint()
	cfg.Root, cfg.PodLogs, cfg.ResolvConf = root, filepath.Join(root, "logs"), "/dev/null"
	cfg.CgroupDriver, cfg.Listen, cfg.Socket = node.DriverNone, "", filepath.Join(t.TempDir(), "socket")
	a, err := New(cfg, nil, Options{Log: slog.New(slog.DiscardHandler)})
	noErr(t, err)
	o := &oneRun{T: t, Agent: a, root: root, end: make(chan error, 1)}
	var ctx context.Context
	ctx, o.stop = context.WithCancel(t.Context())
	go func() { o.end <- a.Run(ctx) }()
	return o
}

// An agent with other defaults comes to another digest and another uid of the same
// manifest: the pod is the same all the same. Its container restarts once the manifest changes.
func TestAnUpgradeRestartsNothingButAnEditDoes(t *testing.T) {
	r, root, dir := critest.Start(t), filepath.Join(t.TempDir(), "root"), t.TempDir()
	r.AddImage("img:1", "img:2")
	write := func(name, text string) {
		temp := filepath.Join(dir, ".new")
		noErr(t, os.WriteFile(temp, []byte(text), 0o644))
		noErr(t, os.Rename(temp, filepath.Join(dir, name)))
	}
	web := manifest("web", "img:1", "terminationGracePeriodSeconds: 1")
	write("web.yaml", strings.Replace(web, "{name: web}", "{name: web, uid: "+olderUID+"}", 1))
	o := folderAgent(t, r, dir, root)
	o.await("default/web-n", v1.PodRunning)
	noErr(t, o.leaves())
	before, _ := r.Container("web-n/c")
	asAnOlderBuild(t, root)

	write("web.yaml", web)
	fence := "{name: fence, annotations: {monopod.start-after: web}}"
	write("fence.yaml", strings.Replace(manifest("fence", "img:1"), "{name: fence}", fence, 1))
	o = folderAgent(t, r, dir, root)
	o.await("default/fence-n", v1.PodRunning)
	write("web.yaml", strings.Replace(web, "img:1", "img:2", 1))
	o.until("the new image runs", func() bool {
		c, ok := r.Container("web-n/c")
		return ok && c.Config.Image.UserSpecifiedImage == "img:2"
	})
	noErr(t, o.leaves())
	if n := r.Count("RunPodSandbox"); n != 2 { // web and the fence
		t.Errorf("%d sandboxes were made, want 2: the upgrade replaced the container %s", n, before.ID)
	}
}

// until waits for what is not reported.
func (o *oneRun) until(what string, is func() bool) {
	o.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); {
		select {
		case <-o.Store().Changes():
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			o.Fatalf("never: %s", what)
		}
	}
}

// What an older agent accepted is the same pod to this one: while it runs, and
// once it has ended.
func TestAnOtherDigestOfTheSamePodTouchesNothing(t *testing.T) {
	for _, row := range []struct {
		name, policy string
		ended        bool
	}{{"running", "Always", false}, {"ended", "Never", true}} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				doc := manifest("web", "img:1", "restartPolicy: "+row.policy)
				r.want(doc)
				r.after(time.Second)
				if row.ended {
					r.Exit("c", 0)
					r.after(time.Minute)
				}
				made := r.made()
				r.kill()
				asAnOlderBuild(t, r.dir)
				r.start()
				r.want(doc)
				r.after(time.Minute)
				if n := r.made() - made; n != 0 {
					r.Errorf("%d calls made something again", n)
				}
			})
		})
	}
}

// A pod whose files a former agent did not bound runs on, and its container restarts.
func TestAnUpgradeRestartsContainersOfAPodWithTooManyFiles(t *testing.T) {
	r, root, dir := critest.Start(t), filepath.Join(t.TempDir(), "root"), t.TempDir()
	r.AddImage("img:1")
	var items strings.Builder
	for k := range 400 {
		fmt.Fprintf(&items, "      - {path: f%d, fieldRef: {fieldPath: \"metadata.annotations['note']\"}}\n", k)
	}
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {note: NOTE}}\nspec:\n  containers:\n" +
		"  - {name: c, image: 'img:1', volumeMounts: [{name: v, mountPath: /v}]}\n  volumes:\n  - name: v\n    downwardAPI:\n      items:\n" + items.String()
	note := strings.Repeat("x", 200_000)
	noErr(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(text), 0o644))
	o := folderAgent(t, r, dir, root)
	o.await("default/web-n", v1.PodRunning)
	noErr(t, o.leaves())
	inCheckpoint(t, root, func(c map[string]any) {
		delete(c, "bounded")
		c["pod"].(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)["note"] = note
	})
	noErr(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(strings.Replace(text, "NOTE", note, 1)), 0o644))

	o = folderAgent(t, r, dir, root)
	o.await("default/web-n", v1.PodRunning)
	noErr(t, o.leaves())
	o = folderAgent(t, r, dir, root) // the agent that follows knows it, too
	o.await("default/web-n", v1.PodRunning)
	before, _ := r.Container("web-n/c")
	r.Exit("web-n/c", 1)
	o.until("the container runs again", func() bool {
		c, ok := r.Container("web-n/c")
		return ok && c.ID != before.ID && c.State == rt.ContainerState_CONTAINER_RUNNING
	})
	noErr(t, os.Remove(filepath.Join(dir, "web.yaml")))
	o.until("the pod and its volumes are gone", func() bool {
		left, _ := filepath.Glob(filepath.Join(root, "pods", "*", "*"))
		return len(left) == 0
	})
	noErr(t, o.leaves())
	if n := r.Count("RunPodSandbox"); n != 1 {
		t.Errorf("%d sandboxes were made, want 1", n)
	}
}

// The next agent of this boot finds its pods where they run.
func TestAnAgentRecordsItsRuntime(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	o := folderAgent(t, r, t.TempDir(), root)
	o.until("the runtime answers", func() bool { return o.watch.State().Up })
	noErr(t, o.leaves())
	if got := checkpoint.UsedRuntime(root, checkpoint.ReadBoot()); got != r.Endpoint() {
		t.Errorf("recorded %q, want %q", got, r.Endpoint())
	}
}
