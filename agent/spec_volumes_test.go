package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri/critest"
)

// needsMounts skips a test whose volumes are in memory where nobody may mount;
// what it mounted goes with it.
func needsMounts(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
}

// unmount takes away what a pod has mounted, after which the test's dir can go.
func (r *rig) unmount() {
	dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods/*/volumes/*/*"))
	binds, _ := filepath.Glob(filepath.Join(r.dir, "pods/*/volume-subpaths/*/*/*"))
	for _, d := range append(dirs, binds...) {
		unix.Unmount(d, unix.MNT_DETACH)
	}
}

// recordedMount is a mount in a recording of the kubelet.
type recordedMount struct {
	ContainerPath string `json:"container_path"`
	HostPath      string `json:"host_path"`
	Readonly      bool   `json:"readonly"`
}

func TestMountsAreTheRecordedOnes(t *testing.T) {
	needsMounts(t)
	b, err := os.ReadFile("../testdata/golden/volume-mounts.json")
	if err != nil {
		t.Fatal(err)
	}
	host := t.TempDir()
	var cases map[string]struct {
		Manifest json.RawMessage
		Mounts   []recordedMount
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(b), "/tmp/golden-hp", host+"/hp")), &cases); err != nil {
		t.Fatal(err)
	}
	// The kubelet cannot mount it without an API server; here it works.
	p := cases["projected"]
	p.Mounts = []recordedMount{{"/p", "pods/<uid>/volumes/kubernetes.io~projected/p", true},
		{"/etc/hosts", "pods/<uid>/etc-hosts", false}, {"/dev/termination-log", "pods/<uid>/containers/main/<log>", false}}
	cases["projected"] = p
	uid, log := regexp.MustCompile(`^pods/[0-9a-f]{32}/`), regexp.MustCompile(`/[0-9a-f]{8}$`)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				defer r.unmount()
				r.AddImage("localhost/busybox:1")
				r.want(string(c.Manifest))
				got, ok := r.Container("default/" + name + "-n/main")
				if ok != (c.Mounts != nil) {
					r.Fatalf("has a container: %v", ok)
				}
				var mounts []recordedMount
				for _, m := range got.Config.GetMounts() {
					at := uid.ReplaceAllString(strings.TrimPrefix(m.HostPath, r.dir+"/"), "pods/<uid>/")
					if strings.Contains(at, "/containers/") {
						at = log.ReplaceAllString(at, "/<log>")
					}
					mounts = append(mounts, recordedMount{m.ContainerPath, at, m.Readonly})
				}
				if !reflect.DeepEqual(mounts, c.Mounts) {
					r.Errorf("got  %v\nwant %v", mounts, c.Mounts)
				}
			})
		})
	}
}

func TestAVolumeThatFailsHoldsThePodBack(t *testing.T) {
	live(t, func(r *rig) {
		socket := "volumes: [{name: v, hostPath: {path: " + r.dir + ", type: Socket}}]"
		r.want(strings.Replace(manifest("web", "img:1", socket), `image: "img:1"`, `image: "img:1", volumeMounts: [{name: v, mountPath: /v}]`, 1))
		r.expect()
		if len(r.Sandboxes()) != 0 {
			r.Error("a sandbox was made")
		}
		if w := r.status("default/web-n").ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ContainerCreating" && w.Reason != "FailedMount" {
			r.Errorf("waiting %+v", w)
		}
	})
}

func TestDownwardFilesSayWhatVariablesSay(t *testing.T) {
	needsMounts(t)
	live(t, func(r *rig) {
		defer r.unmount()
		item := func(path, of string) string {
			return fmt.Sprintf("{path: %s, fieldRef: {fieldPath: \"%s\"}}", path, of)
		}
		amount := func(path, of, divisor string) string {
			return fmt.Sprintf("{path: %s, resourceFieldRef: {containerName: c, resource: %s, divisor: %s}}", path, of, divisor)
		}
		items := strings.Join([]string{item("name", "metadata.name"), item("ns", "metadata.namespace"), item("labels", "metadata.labels"),
			item("ann", "metadata.annotations['a']"), item("anns", "metadata.annotations"), amount("limit", "limits.memory", "1Ki"), amount("cpu", "limits.cpu", "1m"), amount("asked", "requests.cpu", "0")}, ", ")
		doc := manifest("web", "img:1", "volumes: [{name: v, projected: {sources: [{downwardAPI: {items: ["+items+"]}}]}}]")
		doc = strings.Replace(doc, `image: "img:1"`, `image: "img:1", resources: {limits: {memory: 1048577, cpu: 1500m}}, volumeMounts: [{name: v, mountPath: /v}]`, 1)
		doc = strings.Replace(doc, "name: web}", `name: web, labels: {b: z, a: x}, annotations: {a: "say \"hi\"\n"}}`, 1)
		r.want(doc)
		c, ok := r.Container("default/web-n/c")
		if !ok {
			r.Fatal("no container")
		}
		for name, want := range map[string]string{"name": "web-n", "ns": "default", "labels": "a=\"x\"\nb=\"z\"", "ann": "say \"hi\"\n",
			"limit": "1025", "cpu": "1500", "asked": "2"} {
			if got, err := os.ReadFile(filepath.Join(c.Config.Mounts[0].HostPath, name)); string(got) != want || err != nil {
				r.Errorf("%s reads %q, %v", name, got, err)
			}
		}
		got, err := os.ReadFile(filepath.Join(c.Config.Mounts[0].HostPath, "anns"))
		if !strings.HasPrefix(string(got), `a="say \"hi\"\n"`) || strings.HasSuffix(string(got), "\n") || err != nil {
			r.Errorf("anns reads %q, %v", got, err)
		}
	})
}

// withImageVolume is a pod that mounts an image twice, once a part of it.
func withImageVolume(image, policy string) string {
	doc := manifest("web", "img:1", "volumes: [{name: v, image: {reference: \""+image+"\", pullPolicy: "+policy+"}}]")
	doc = strings.Replace(doc, "name: web}", "name: web, annotations: {k: x}}", 1)
	return strings.Replace(doc, `image: "img:1"`, `image: "img:1", env: [{name: X, value: b}], volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /w, subPathExpr: a/$(X)}]`, 1)
}

func TestImageVolumesAreMountedByTheRuntime(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("vol:1", 20*time.Second, nil)
		r.want(withImageVolume("vol:1", "IfNotPresent"))
		r.expect()
		if w := r.status("default/web-n").ContainerStatuses[0].State.Waiting; w == nil || w.Message != `pulling image "vol:1"` {
			r.Errorf("waiting %+v", w)
		}
		r.after(21 * time.Second)
		r.expect("default/web-n/c")
		c, _ := r.Container("default/web-n/c")
		var ref string
		for _, k := range r.Calls() {
			if q, ok := k.Request.(*rt.PullImageRequest); ok && q.Image.Image == "vol:1" {
				ref = q.Image.Image
			}
		}
		if ref == "" || r.Count("PullImage") != 1 {
			r.Errorf("%d pulls", r.Count("PullImage"))
		}
		for k, want := range []struct{ at, sub string }{{"/v", ""}, {"/w", "a/b"}} {
			m := c.Config.Mounts[k]
			if m.ContainerPath != want.at || m.ImageSubPath != want.sub || m.HostPath != "" || !m.Readonly || m.SelinuxRelabel ||
				!strings.HasPrefix(m.Image.GetImage(), "sha256:") || m.Image.GetUserSpecifiedImage() != "vol:1" || m.Image.GetAnnotations()["k"] != "x" {
				r.Errorf("mount %v", m)
			}
		}
		if c.Config.Mounts[0].Image.Image == c.Config.Image.Image {
			r.Error("the volume has the container's image")
		}
		r.want()
		r.after(time.Minute)
		if dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*")); len(dirs) > 0 {
			r.Errorf("left on disk: %v", dirs)
		}
	})
}

func TestImageVolumesArePulledByTheirPolicy(t *testing.T) {
	for _, c := range []struct {
		policy  string
		present bool
		pulls   int
	}{{"IfNotPresent", false, 1}, {"IfNotPresent", true, 0}, {"Always", true, 1}, {"Never", true, 0}} {
		t.Run(fmt.Sprint(c.policy, " ", c.present), func(t *testing.T) {
			live(t, func(r *rig) {
				if c.present {
					r.AddImage("vol:1")
				}
				r.want(withImageVolume("vol:1", c.policy))
				r.expect("default/web-n/c")
				if got := r.Count("PullImage"); got != c.pulls {
					r.Errorf("%d pulls", got)
				}
				r.Exit("c", 1)
				r.after(time.Minute)
				r.expect("default/web-n/c")
				if got, want := r.Count("PullImage"), map[string]int{"Always": 2}[c.policy]; c.policy == "Always" && got != want {
					r.Errorf("%d pulls after a restart", got)
				}
			})
		})
	}
}

func TestImageVolumesFailAsImagesDo(t *testing.T) {
	for _, c := range []struct{ image, policy, reason, message, later string }{
		{"vol:9", "IfNotPresent", "ErrImagePull", "no such image", `Back-off pulling image "vol:9": ErrImagePull: `},
		{"vol:9", "Never", "ErrImageNeverPull", `Container image "vol:9" is not present with pull policy of Never`, ""},
		{"Vol 9", "IfNotPresent", "InvalidImageName", `Failed to apply default image tag "Vol 9": couldn't parse image name "Vol 9": `, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			live(t, func(r *rig) {
				r.OnPull("vol:9", 0, fmt.Errorf("no such image"))
				r.want(withImageVolume(c.image, c.policy))
				waits := func() *v1.ContainerStateWaiting {
					return r.status("default/web-n").ContainerStatuses[0].State.Waiting
				}
				if w := waits(); w == nil || w.Reason != c.reason || !strings.Contains(w.Message, c.message) {
					r.Errorf("waiting %+v", w)
				}
				r.after(11 * time.Second)
				if w := waits(); c.later != "" && (w == nil || w.Reason != "ImagePullBackOff" || !strings.HasPrefix(w.Message, c.later)) {
					r.Errorf("waiting %+v", w)
				}
				r.expect()
			})
		})
	}
}

func TestARuntimeWithoutImageVolumesIsNamed(t *testing.T) {
	for words, want := range map[string]string{
		`failed to generate container "x" spec: failed to apply OCI options: failed to mkdir "": mkdir : no such file or directory`: `the runtime cannot mount image "vol:1" as a volume: it needs to be containerd 2.1, CRI-O 1.31 or newer: CreateContainer default/web-n/c: failed to generate`,
		"ImageVolumeMountFailed: the disk is full": "CreateContainer default/web-n/c: ImageVolumeMountFailed: the disk is full",
	} {
		live(t, func(r *rig) {
			r.Fault(critest.On("CreateContainer").Fail(codes.Unknown, words))
			r.want(withImageVolume("vol:1", "IfNotPresent"))
			w := r.status("default/web-n").ContainerStatuses[0].State.Waiting
			if w == nil || w.Reason != "CreateContainerError" || !strings.HasPrefix(w.Message, want) {
				r.Errorf("waiting %+v", w)
			}
		})
	}
}

func TestASweepIsNotHeldUpByABusyMount(t *testing.T) {
	needsMounts(t)
	live(t, func(r *rig) {
		defer r.unmount()
		r.want(manifest("web", "img:1"))
		r.stop()
		busy := filepath.Join(r.dir, "pods/0busy/volumes/kubernetes.io~secret/v")
		foreign := filepath.Join(r.dir, "pods/1foreign/volumes/kubernetes.io~secret/v/in")
		other := filepath.Join(r.dir, "pods/2other/volumes")
		for _, dir := range []string{busy, foreign, other} {
			if err := os.MkdirAll(dir, 0o750); err != nil {
				r.Fatal(err)
			}
		}
		outside := r.TempDir()
		if err := os.Symlink(outside, filepath.Join(r.dir, "pods/3link")); err != nil {
			r.Fatal(err)
		}
		for _, at := range []string{busy, foreign} {
			if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=4096"); err != nil {
				r.Fatal(err)
			}
		}
		f, err := os.Create(filepath.Join(busy, "file"))
		if err != nil {
			r.Fatal(err)
		}
		defer f.Close()
		r.start()
		r.want(manifest("web", "img:1"))
		r.expect("default/web-n/c")
		for dir, there := range map[string]bool{"0busy": false, "1foreign": true, "2other": false, "3link": true} {
			if _, err := os.Lstat(filepath.Join(r.dir, "pods", dir)); (err == nil) != there {
				r.Errorf("%s: %v", dir, err)
			}
		}
		if !strings.Contains(r.log.String(), "something is mounted at "+foreign) {
			r.Error("nothing is said of the mount that is left")
		}
		if err := unix.Unmount(foreign, 0); err != nil {
			r.Error(err)
		}
		if _, err := os.Stat(outside); err != nil {
			r.Error(err)
		}
	})
}
