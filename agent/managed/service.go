package managed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

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

// units matches the names of all its units.
func (r *Runtime) units() string { return "monopod-containerd-" + r.tag() + "-*" }

// newUnit returns the name of a unit that there is not: one that died stays as long as containers,
// whose shims are in its cgroup.
func (r *Runtime) newUnit() string {
	return strings.TrimSuffix(r.units(), "*") + strconv.FormatInt(time.Now().UnixMilli(), 36) + ".service"
}

// callPatience bounds what asks systemd and other programs.
const callPatience = 30 * time.Second

// spawnService has systemd start containerd with the rights that containers need, which the unit of
// the agent does not have. The agent alone starts it again. KillMode leaves containers running.
func (r *Runtime) spawnService(ctx context.Context) (*process, error) {
	unit := r.newUnit()
	boot, err := bootID()
	if err == nil {
		err = r.note(identity{Boot: boot, Unit: unit}) // so that the next agent finds it
	}
	if err != nil {
		return nil, err
	}
	args := []string{"--quiet", "--collect", "--unit", unit, "--description", "containerd of monopod",
		"--property", "KillMode=process", "--property", "Delegate=yes", "--property", "TasksMax=infinity",
		"--property", "LimitNOFILE=1048576", "--property", "OOMScoreAdjust=-999", "--property", "Type=exec"}
	for _, v := range append(proxies(os.Environ()), r.path()) {
		args = append(args, "--setenv", v)
	}
	if _, err := output(ctx, "systemd-run", append(args, r.binary, "--config", r.file("config.toml"))...); err != nil {
		return nil, err
	}
	pid, err := mainPID(ctx, unit)
	if err == nil && pid == 0 {
		err = fmt.Errorf("%s has ended", unit)
	}
	if err != nil {
		return nil, err
	}
	return r.adopt(pid, unit)
}

// proxies returns the variables that say how to reach registries.
func proxies(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, strings.ToUpper(name))
	})
}

// mainPID returns the main process of a unit; 0: it has none, or there is no such unit.
func mainPID(ctx context.Context, unit string) (int, error) {
	out, err := output(ctx, "systemctl", "show", "--property", "MainPID", "--value", unit)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		return 0, fmt.Errorf("systemctl show %s: %w", unit, err)
	}
	return pid, nil
}

// output returns what a program prints, within callPatience.
func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
