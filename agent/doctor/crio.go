package doctor

import (
	"context"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"monopod/cri"
)

// crioSettings warns of what CRI-O lacks: container events, which are off unless a file turns them
// on, and an OCI runtime that takes its specifications. CRI-O reports both settings from 1.33 on.
func crioSettings(ctx context.Context, m *Machine) (found []Finding) {
	if m.version.RuntimeName != cri.CRIO {
		return nil
	}
	info, err := m.Runtime.Info(ctx)
	if err != nil || info.CRIO == nil {
		return nil
	}
	if !info.CRIO.PodEvents {
		found = append(found, warn("enable_pod_events = true below [crio.runtime] in a file in /etc/crio/crio.conf.d, and restart CRI-O",
			"CRI-O sends no container events: monopod looks at all pods each second, and a crashed container starts up to a second later"))
	}
	crun := crunVersion(ctx, info.CRIO.RuntimePath)
	if older(crun, 1, 15) && !older(m.version.RuntimeVersion, 1, 30) {
		found = append(found, fail("install crun 1.15 or newer; or default_runtime = \"runc\" below [crio.runtime] in a file in /etc/crio/crio.conf.d, with runc installed, and restart CRI-O",
			"%s is crun %s, which runs nothing that CRI-O %s makes (\"unknown version specified\")", info.CRIO.RuntimePath, crun, m.version.RuntimeVersion))
	}
	return found
}

// crunVersion returns the version of an OCI runtime, "" if it is another one than crun, or does not
// say.
func crunVersion(ctx context.Context, path string) string {
	if path == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, path, "--version").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	version, isCrun := strings.CutPrefix(line, "crun version ")
	if !isCrun {
		return ""
	}
	return version
}

var majorMinor = regexp.MustCompile(`^v?(\d+)\.(\d+)`)

// older reports whether a version is before major.minor. One that cannot be read is not.
func older(version string, major, minor int) bool {
	m := majorMinor.FindStringSubmatch(version)
	if m == nil {
		return false
	}
	its, err := strconv.Atoi(m[1])
	below, err2 := strconv.Atoi(m[2])
	return err == nil && err2 == nil && (its < major || its == major && below < minor)
}
