package managed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

// Capabilities, see linux/capability.h.
const (
	capSysAdmin    = 21
	capSysResource = 24
)

// rights is what a process may do that is to start containers.
type rights struct {
	user         int
	capabilities uint64
	mounts       []mount
}

// mount is a mount of this process.
type mount struct {
	point, kind string
	readOnly    bool
}

// Possible returns why this process can start no containerd that runs containers, in one sentence
// that says what to do.
func Possible() error {
	if _, err := exec.LookPath("containerd"); err != nil {
		return ErrNoBinary
	}
	return Able()
}

// Able returns why a containerd that this process starts could run no containers, in one sentence
// that says what to do.
func Able() error { return rightsNow().check() }

func rightsNow() rights {
	return rights{os.Geteuid(), capabilities(), mounts()}
}

const inContainer = "in a container, start that with `docker run --privileged` (GitLab: privileged = true in the runner's config.toml)"

func (r rights) check() error {
	if r.user != 0 {
		return errors.New("a containerd of monopod's own needs root: run monopod as root, as with sudo")
	}
	if len(r.mounts) == 0 {
		return errors.New("a containerd of monopod's own needs /proc, and it is not mounted: mount -t proc proc /proc")
	}
	if r.capabilities&(1<<capSysAdmin) == 0 {
		return errors.New("a containerd of monopod's own needs CAP_SYS_ADMIN, to mount and to make namespaces, and this process lacks it: " + inContainer)
	}
	var trees []mount
	for _, m := range r.mounts {
		if strings.HasPrefix(m.kind, "cgroup") && strings.HasPrefix(m.point+"/", "/sys/fs/cgroup/") {
			trees = append(trees, m)
		}
	}
	if len(trees) == 0 {
		return errors.New("a containerd of monopod's own needs cgroups, and none are mounted: mount -t cgroup2 cgroup2 /sys/fs/cgroup; " + inContainer)
	}
	if k := slices.IndexFunc(trees, func(m mount) bool { return m.readOnly }); k >= 0 {
		return fmt.Errorf("a containerd of monopod's own needs cgroups that it can change, and %s is mounted read-only: %s", trees[k].point, inContainer)
	}
	return nil
}

func hasCapability(bit int) bool { return capabilities()&(1<<bit) != 0 }

// capabilities returns the effective ones of this process.
func capabilities() uint64 {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, _ := strconv.ParseUint(strings.TrimSpace(v), 16, 64)
			return caps
		}
	}
	return 0
}

func mounts() []mount {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	return parseMounts(f)
}

// parseMounts reads a mountinfo file, see proc_pid_mountinfo(5).
func parseMounts(r io.Reader) (all []mount) {
	for s := bufio.NewScanner(r); s.Scan(); {
		left, right, ok := strings.Cut(s.Text(), " - ")
		l, kind := strings.Split(left, " "), strings.Fields(right) // paths may have other blanks than spaces
		if ok && len(l) > 5 && len(kind) > 0 {
			all = append(all, mount{unescape(l[4]), kind[0], slices.Contains(strings.Split(l[5], ","), "ro")})
		}
	}
	return all
}

// unescape reads the octal numbers of blanks and the like.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// snapshotter is overlayfs where the file system of dir can be the upper one of an overlay, which
// that of a container often cannot. A full disk does not tell: then it is the former one.
func snapshotter(dir, former string) string {
	err := tryOverlay(dir)
	switch {
	case err == nil:
		return "overlayfs"
	case disk.Unwritable(err) && former != "":
		return former
	}
	return "native"
}

// tryOverlay makes an overlay in dir and removes it again, as well as one of an agent that was killed
// meanwhile.
func tryOverlay(dir string) error {
	dir = filepath.Join(dir, "overlay-trial")
	at := func(name string) string { return filepath.Join(dir, name) }
	_ = unix.Unmount(at("merged"), unix.MNT_DETACH)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.MkdirAll(at(name), 0o700); err != nil {
			return err
		}
	}
	err := unix.Mount("overlay", at("merged"), "overlay", 0, "lowerdir="+at("lower")+",upperdir="+at("upper")+",workdir="+at("work"))
	if err != nil {
		return err
	}
	return unix.Unmount(at("merged"), 0)
}
