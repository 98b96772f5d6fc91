//go:build e2e

package docs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"monopod/agent/e2e/rig"
)

// kubeadmPage is the page that needs kubeadm, and images of what it has run.
const kubeadmPage = "control-plane.md"

// components is the program that stands in for those of a control plane.
const components = carried + "/components"

// carryComponents builds that program into the machine in dir, which has no network for it.
func carryComponents(t *testing.T, dir string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(dir, components), "./testdata/images/components")
	build.Dir, build.Env = root(t), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
}

// furnishKubeadm gives the machine the kubeadm that make test-docs has built, and a registry with
// the images of two versions.
func furnishKubeadm(t *testing.T, r *rig.Rig) {
	t.Helper()
	found, err := filepath.Glob("/root/.cache/monopod/kubeadm-*/kubeadm")
	if cache := os.Getenv("MONOPOD_CACHE"); cache != "" {
		found, err = filepath.Glob(cache + "/kubeadm-*/kubeadm")
	}
	if err != nil || len(found) != 1 {
		t.Fatalf("kubeadm is not there, or more than once (%v, %v): make test-docs builds it", found, err)
	}
	check(t, os.Symlink(found[0], "/usr/local/bin/kubeadm"))
	program, err := os.ReadFile(components)
	check(t, err)
	entries := []rig.Entry{{Path: "bin/components", Data: program}}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		entries = append(entries, rig.Entry{Path: "bin/" + name, Link: "components"})
	}
	image, err := rig.NewImage(nil, entries...)
	check(t, err)
	for _, name := range []string{"etcd:3.6.8-0", "kube-apiserver:v1.36.3", "kube-controller-manager:v1.36.3", "kube-scheduler:v1.36.3",
		"kube-apiserver:v1.36.4", "kube-controller-manager:v1.36.4", "kube-scheduler:v1.36.4"} {
		_, pushed := r.Registry.Push("registry.k8s.io/"+name, image)
		err = errors.Join(err, pushed)
	}
	check(t, err)
}
