package doctor

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/cri"
)

// shutdownSeen is the file that CRI-O makes if it records whether it has ended orderly; its name
// is clean_shutdown_file's with .supported.
const shutdownSeen = "var/lib/crio/clean.shutdown.supported"

// wipedImages warns of images that do not outlive a power cut: crio wipe deletes all of them at a
// boot before which CRI-O has not ended orderly (CRI-O, internal/criocli/wipe.go).
func wipedImages(ctx context.Context, m *Machine) []Finding {
	if !m.hasFile(shutdownSeen) || m.runtimeName() != cri.CRIO || !m.enabledUnit("crio-wipe.service") {
		return nil
	}
	return []Finding{warn(`systemctl disable crio-wipe.service; or clean_shutdown_file = "" below [crio] in a file in /etc/crio/crio.conf.d, then remove /`+shutdownSeen,
		"a power cut makes CRI-O delete all images, and pods wait until they can be pulled: crio-wipe.service runs at each boot")}
}

// enabledUnit reports whether a unit of systemd starts with another, and is not masked.
func (m *Machine) enabledUnit(name string) bool {
	if to, _ := os.Readlink(m.file("etc/systemd/system/" + name)); to == os.DevNull {
		return false
	}
	etc, _ := filepath.Glob(m.file("etc/systemd/system/*.*/" + name))
	lib, _ := filepath.Glob(m.file("usr/lib/systemd/system/*.*/" + name))
	return len(etc)+len(lib) > 0
}

// atOnce is how long a container runs at most whose program cannot even start.
const atOnce = time.Second

// damagedImages warns of images of which a power cut may have left files empty: containers of them
// fail at once, again and again, since a boot before which the agent had not ended by itself. CRI-O's
// internal_repair, at its start, does not read the files.
func damagedImages(ctx context.Context, m *Machine) []Finding {
	if m.runtimeName() != cri.CRIO || !m.bootedUncleanly() {
		return nil
	}
	all, err := m.Runtime.Containers(ctx, nil)
	if err != nil {
		return nil
	}
	images := map[string]bool{}
	for _, c := range newestOf(all) {
		if c.State != rt.ContainerState_CONTAINER_EXITED || c.Metadata.GetAttempt() < 2 {
			continue
		}
		st, err := m.Runtime.ContainerStatus(ctx, c.Id)
		if err == nil && st.ExitCode != 0 && time.Duration(st.FinishedAt-st.StartedAt) <= atOnce {
			images[st.Image.GetImage()] = true
		}
	}
	if len(images) == 0 {
		return nil
	}
	return []Finding{warn("systemctl stop crio; crio check --quick --repair; systemctl start crio: an image that is damaged is deleted, and must be pulled or loaded again",
		"the machine did not end in order before this boot, and since then containers fail at once of images of which a power cut may have left files empty: %s", strings.Join(slices.Sorted(maps.Keys(images)), ", "))}
}

// newestOf returns the last attempt of each container.
func newestOf(all []*rt.Container) map[string]*rt.Container {
	newest := map[string]*rt.Container{}
	for _, c := range all {
		of := c.Labels[labelUID] + "/" + c.Metadata.GetName()
		if was := newest[of]; was == nil || was.Metadata.GetAttempt() < c.Metadata.GetAttempt() {
			newest[of] = c
		}
	}
	return newest
}

// bootedUncleanly reports whether the agent had not ended by itself before this boot.
func (m *Machine) bootedUncleanly() bool {
	now, _ := os.ReadFile(m.file("proc/sys/kernel/random/boot_id"))
	noted, _ := os.ReadFile(filepath.Join(m.Config.Root, checkpoint.UncleanBoot))
	id := strings.TrimSpace(string(now))
	return id != "" && id == strings.TrimSpace(string(noted))
}
