//go:build e2e

package docs

import (
	"embed"
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"monopod/agent/e2e/rig"
)

//go:embed machine.sh
var machineScript []byte

//go:embed standins
var standinFiles embed.FS

// hostname is the name of the machine that pages are about.
const hostname = "edge7"

// What the test and the machine made for it are told: which page is run, and where the checkout is.
const (
	envPage = "MONOPOD_DOCS_PAGE"
	envRoot = "MONOPOD_DOCS_ROOT"
)

// Places on the machine.
const (
	standins = "/usr/local/sbin"
	checkout = "/srv/monopod" // where pages have a person be who types make
	carried  = "/tmp/carried" // what the test brings
)

// runOnMachine runs this test program for one page on a machine of its own.
func runOnMachine(t *testing.T, page, binary string) {
	t.Helper()
	dir := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(dir, carried), 0o755))
	exe, err := os.Executable()
	check(t, err)
	for name, file := range map[string]string{"monopod": binary, "docs.test": exe} {
		check(t, copyFile(filepath.Join(dir, carried, name), file))
	}
	if page == kubeadmPage {
		carryComponents(t, dir)
	}
	script := filepath.Join(dir, "machine.sh")
	check(t, os.WriteFile(script, machineScript, 0o755))
	cmd := exec.CommandContext(t.Context(), "sh", script, dir, hostname, carried+"/docs.test", "-test.run", "^TestPage$", "-test.v")
	cmd.Env = append(os.Environ(), envPage+"="+page, envRoot+"="+root(t), "TMPDIR=/tmp")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v", page, err)
	}
	fetchPage(t, dir, page)
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// images are the names under which pages run a busybox, each with the one that the rig has.
var images = map[string]string{
	"docker.io/library/busybox:1.36": rig.Busybox,
	"docker.io/library/busybox:1.37": rig.Busybox2,
}

// furnish gives the machine what one has on which containerd was installed: a pod network, and
// registries that have the images. The rig goes with the machine; until then it must be kept, as
// the janitor removes one that is not kept.
func furnish(t *testing.T) *rig.Rig {
	t.Helper()
	r, err := rig.Open(t.Context(), rig.Distro)
	check(t, err)
	for name, from := range images {
		check(t, r.Registry.Copy(from, name))
	}
	socket := r.Runtime.Endpoint[len("unix://"):]
	links := map[string]string{"/run/containerd/containerd.sock": socket,
		"/etc/cni/net.d": r.Network.ConfDir(), "/etc/containerd/certs.d": filepath.Join(r.Runtime.Dir, "certs.d")}
	for link, to := range links {
		check(t, errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.RemoveAll(link), os.Symlink(to, link)))
	}
	files, err := fs.ReadDir(standinFiles, "standins")
	check(t, err)
	for _, f := range files {
		text, err := standinFiles.ReadFile("standins/" + f.Name())
		check(t, errors.Join(err, os.WriteFile(filepath.Join(standins, f.Name()), text, 0o755)))
	}
	return r
}

// install puts monopod where its package does, and starts it.
const install = `
install /tmp/carried/monopod /usr/bin/monopod
install -D -m 644 ` + checkout + `/packaging/monopod.service /usr/lib/systemd/system/monopod.service
monopod init >/dev/null
rm /etc/monopod/manifests/hello.yaml
systemctl start monopod
`

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
