package managed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// UnderSystemd reports whether this process is a service of systemd's. What it may not do its
// children may not do either, so a runtime must be a service of its own.
func UnderSystemd() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil && os.Getenv("INVOCATION_ID") != ""
}

// SystemdCgroups reports whether systemd manages the cgroups of this machine.
func SystemdCgroups() bool {
	_, err := os.Stat("/run/systemd/system")
	var st unix.Statfs_t
	return err == nil && unix.Statfs("/sys/fs/cgroup", &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// tag is short, and another one for each root dir: names on the machine end with it.
func (r *Runtime) tag() string { return tagOf(r.dir) }

func tagOf(dir string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))[:8] }

func (r *Runtime) unit() string { return "monopod-containerd-" + r.tag() + ".service" }

// launchService has systemd start containerd with the rights that containers need, which the unit
// of the agent does not have. The agent alone starts it again. KillMode leaves containers running.
func (r *Runtime) launchService(ctx context.Context) (int, error) {
	args := []string{"--quiet", "--collect", "--unit", r.unit(), "--description", "containerd of monopod",
		"--property", "KillMode=process", "--property", "Delegate=yes", "--property", "TasksMax=infinity",
		"--property", "LimitNOFILE=1048576", "--property", "OOMScoreAdjust=-999", "--property", "Type=exec",
		"--setenv", r.path(), r.binary, "--config", r.file("config.toml")}
	if out, err := exec.CommandContext(ctx, "systemd-run", args...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("systemd-run: %w: %s", err, strings.TrimSpace(string(out)))
	}
	out, err := exec.CommandContext(ctx, "systemctl", "show", "--property", "MainPID", "--value", r.unit()).Output()
	if err != nil {
		return 0, fmt.Errorf("systemctl show %s: %w", r.unit(), err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || pid == 0 {
		return 0, fmt.Errorf("%s has ended: %s", r.unit(), r.lastWords())
	}
	return pid, nil
}
