package agent

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// untouched fails if anything was made beside the agent's own folders. The
// folder that its root dir is in must have been new.
func (r *rig) untouched() {
	r.Helper()
	above := filepath.Dir(r.dir)
	err := filepath.WalkDir(above, func(path string, _ fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(above, path)
		at := strings.Split(rel, "/")
		switch {
		case err != nil, len(at) == 1: // above itself, and the root dir
			return err
		case slices.Contains([]string{"pods", "logs", "status"}, at[1]):
			return fs.SkipDir
		case !slices.Contains([]string{"lock", "instance", "instance.twin"}, at[1]):
			r.Errorf("made %s", path)
		}
		return nil
	})
	noErr(r.T, err)
}

// Each field that becomes a path, with a value that would lead elsewhere.
func TestPathsThatLeadOutAreRefused(t *testing.T) {
	const mount = "volumeMounts: [{name: v, mountPath: /v}]|"
	for name, doc := range map[string]string{
		"subPath":                    "volumeMounts: [{name: v, mountPath: /v, subPath: ../x}]|volumes: [{name: v}]",
		"absolute subPath":           "volumeMounts: [{name: v, mountPath: /v, subPath: /etc}]|volumes: [{name: v}]",
		"subPathExpr":                "volumeMounts: [{name: v, mountPath: /v, subPathExpr: ../x}]|volumes: [{name: v}]",
		"subPathExpr, expanded":      "env: [{name: X, value: ../..}], volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(X)/x}]|volumes: [{name: v}]",
		"subPathExpr, made absolute": "env: [{name: X, value: /etc}], volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(X)}]|volumes: [{name: v}]",
		"subPath in an image":        "env: [{name: X, value: ../..}], volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(X)/x}]|volumes: [{name: v, image: {reference: \"img:2\"}}]",
		"mountPath":                  "volumeMounts: [{name: v, mountPath: /v/../../x}]|volumes: [{name: v}]",
		"relative mountPath":         "volumeMounts: [{name: v, mountPath: ../x}]|volumes: [{name: v}]",
		"hostPath":                   mount + "volumes: [{name: v, hostPath: {path: /tmp/../etc}}]",
		"hostPath to be made":        mount + "volumes: [{name: v, hostPath: {path: ROOT/pods/../x, type: DirectoryOrCreate}}]",
		"downwardAPI":                mount + "volumes: [{name: v, downwardAPI: {items: [{path: ../x, fieldRef: {fieldPath: metadata.name}}]}}]",
		"downwardAPI, within":        mount + "volumes: [{name: v, downwardAPI: {items: [{path: a/../../x, fieldRef: {fieldPath: metadata.name}}]}}]",
		"downwardAPI, absolute":      mount + "volumes: [{name: v, downwardAPI: {items: [{path: /x, fieldRef: {fieldPath: metadata.name}}]}}]",
		"downwardAPI, the volume's":  mount + "volumes: [{name: v, downwardAPI: {items: [{path: ..data, fieldRef: {fieldPath: metadata.name}}]}}]",
		"projected":                  mount + "volumes: [{name: v, projected: {sources: [{downwardAPI: {items: [{path: ../x, fieldRef: {fieldPath: metadata.name}}]}}]}}]",
		"volume's name":              "volumeMounts: [{name: ../v, mountPath: /v}]|volumes: [{name: ../v}]",
		"termination log":            "terminationMessagePath: /dev/../../log|",
		"seccomp profile":            "securityContext: {seccompProfile: {type: Localhost, localhostProfile: ../x.json}}|",
		"absolute seccomp profile":   "securityContext: {seccompProfile: {type: Localhost, localhostProfile: /etc/x.json}}|",
		"seccomp profile of the pod": "|securityContext: {seccompProfile: {type: Localhost, localhostProfile: a/../../x.json}}",
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				container, spec, _ := strings.Cut(strings.ReplaceAll(doc, "ROOT", r.dir), "|")
				if container != "" {
					container += ", "
				}
				r.offer(strings.Replace(manifest("web", "img:1", spec), "name: c, ", "name: c, "+container, 1))
				r.after(time.Minute)
				r.expect()
				if n := r.Count("CreateContainer"); n != 0 {
					r.Errorf("created %d containers", n)
				}
				r.untouched()
			})
		})
	}
}

// Each name that folders and files are called by.
func TestNamesThatLeadOutAreRefused(t *testing.T) {
	for field, names := range map[string][]string{
		"name":      {"../../x", "a/../../../x", "/x", "..", ".", "a_b", "*", "a\x00"},
		"namespace": {"../../x", "a/b", "..", ".", "a_b", "*"},
		"container": {"../../x", "../../../victim", "..", ".", "a/b", "*"},
		"uid":       {"../../x", "_", "/", "..", ".", "a/b", "x\n", "*"},
	} {
		for _, name := range names {
			t.Run(fmt.Sprintf("%s %q", field, name), func(t *testing.T) {
				live(t, func(r *rig) {
					doc := manifest("web", "img:1")
					switch field {
					case "name":
						doc = strings.Replace(doc, "{name: web}", fmt.Sprintf("{name: %q}", name), 1)
					case "container":
						doc = strings.Replace(doc, "name: c,", fmt.Sprintf("name: %q,", name), 1)
					default:
						doc = strings.Replace(doc, "name: web}", fmt.Sprintf("name: web, %s: %q}", field, name), 1)
					}
					r.offer(doc)
					r.after(time.Minute)
					if r.expect(); r.made() > 0 {
						r.Errorf("made %v and %v", r.Sandboxes(), r.Containers())
					}
					for _, dir := range []string{"pods", "logs"} {
						if e, _ := os.ReadDir(filepath.Join(r.dir, dir)); len(e) > 0 {
							r.Errorf("made %v in %s", e, dir)
						}
					}
					r.untouched()
				})
			})
		}
	}
}

// Whoever may talk to the runtime may call a container in one of our sandboxes
// as he likes; no file that its name leads to may go.
func TestAContainerWhoseNameIsNoFileNameIsLeftAlone(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		c, _ := r.Container("c")
		uid := r.Sandboxes()[0].Config.Metadata.Uid
		logs := filepath.Join(r.dir, "logs")
		victims := []string{filepath.Join(r.dir, "victim", "0.log"), filepath.Join(logs, "default_web-n_"+uid, "c", "0.log")}
		for _, path := range victims {
			noErr(r.T, os.MkdirAll(filepath.Dir(path), 0o755))
			noErr(r.T, os.WriteFile(path, []byte("kept"), 0o644))
		}
		client := cri.New(r.Conn())
		for _, name := range []string{"../../victim", "*"} {
			for attempt := range uint32(3) {
				config := &rt.ContainerConfig{Metadata: &rt.ContainerMetadata{Name: name, Attempt: attempt},
					Image: c.Config.Image, Labels: c.Config.Labels, Annotations: c.Config.Annotations}
				id, err := client.CreateContainer(context.Background(), r.Sandboxes()[0].ID, config, r.Sandboxes()[0].Config)
				noErr(r.T, err)
				noErr(r.T, client.StartContainer(context.Background(), id))
				noErr(r.T, client.StopContainer(context.Background(), id, 0))
			}
		}
		r.after(time.Minute)
		for _, path := range victims {
			if _, err := os.Stat(path); err != nil {
				r.Error(err)
			}
		}
		r.want()
		r.after(time.Minute)
		if _, err := os.Stat(victims[0]); err != nil || len(r.Sandboxes()) > 0 {
			r.Errorf("stat %v, sandboxes %v", err, r.Sandboxes())
		}
	})
}
