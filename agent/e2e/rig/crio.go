package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"monopod/agent/managed"
)

// What a CRI-O of the rig is told by the environment.
const (
	envCRIO        = "MONOPOD_CRIO"         // the folder with crio and pinns
	envCRIORuntime = "MONOPOD_CRIO_RUNTIME" // the OCI runtime: runc, or crun
	envCRIOEvents  = "MONOPOD_CRIO_EVENTS"  // 1: it streams container events; 0: it does not, which is its default
)

// attachDir is where the sockets for attach are. Their paths must be short: the name of
// a folder there is a container's id, and unix(7) allows 107 bytes.
const attachDir = "a"

// Of images CRI-O counts the records alone, not the layers (server/image_fs_info.go).
var crio = kind{name: "cri-o", cgroup: "crio-", imageBytes: 1, mirror: writeRegistry, keepsSecrets: true, grants: true, rereads: true,
	lastWords: "panic: close of closed channel"} // with events: 1.36.3 shuts down twice

func crioFolder() string { return os.Getenv(envCRIO) }

// crioSettings are what CRI-O's configuration is made of.
type crioSettings struct {
	dir         string // its own: root, state, socket, registries.conf are in here
	bin         string // the folder with crio and pinns
	network     *Network
	runtime     string // runc, crun
	runtimePath string
	conmon      string
	events      bool
}

// storageConf is the variable that names the file about the storage of CRI-O's libraries.
const storageConf = "CONTAINERS_STORAGE_CONF"

// newCRIO writes the configuration of the CRI-O in MONOPOD_CRIO.
func newCRIO(dir string, network *Network, registry string) (*Runtime, error) {
	s, err := newCRIOSettings(dir, network)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"conf.d", "registries.conf.d", "hooks.d", "exits", attachDir, "ns", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	if s.runtimePath, err = modest(dir, s.runtimePath); err != nil {
		return nil, err
	}
	if err := os.Setenv(storageConf, s.dir+"/storage.conf"); err != nil { // for skopeo, which agents run
		return nil, err
	}
	return &Runtime{kind: crio, argv: s.command(), env: s.env(), Log: filepath.Join(dir, "crio.log"),
		Endpoint: "unix://" + filepath.Join(dir, "crio.sock")}, s.write(registry)
}

// newCRIOSettings finds the programs that a CRI-O consists of.
func newCRIOSettings(dir string, network *Network) (s crioSettings, err error) {
	s = crioSettings{dir: dir, network: network, events: os.Getenv(envCRIOEvents) == "1", runtime: cmp.Or(os.Getenv(envCRIORuntime), "runc")}
	if s.bin, err = filepath.Abs(crioFolder()); err != nil {
		return s, err
	}
	for _, program := range []string{"crio", "pinns"} {
		if _, err := exec.LookPath(filepath.Join(s.bin, program)); err != nil {
			return s, fmt.Errorf("%s must name the folder with crio and pinns: %w", envCRIO, err)
		}
	}
	if s.conmon, err = exec.LookPath("conmon"); err != nil {
		return s, fmt.Errorf("CRI-O has its containers watched by conmon, which is not there: install conmon: %w", err)
	}
	s.runtimePath, err = exec.LookPath(s.runtime)
	return s, err
}

func (s crioSettings) command() []string {
	return []string{s.bin + "/crio", "--config", s.dir + "/crio.conf", "--config-dir", s.dir + "/conf.d", "--log-level", "info",
		"--registries-conf", s.dir + "/registries.conf", "--registries-conf-dir", s.dir + "/registries.conf.d"}
}

func (s crioSettings) env() []string {
	return []string{storageConf + "=" + s.dir + "/storage.conf", "TMPDIR=" + s.dir + "/tmp"}
}

// write writes all files that the command and the environment name.
func (s crioSettings) write(registry string) error {
	for file, text := range map[string]string{
		"crio.conf":       s.config(),
		"storage.conf":    fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = \"%[1]s/root\"\nrunroot = \"%[1]s/state\"\n", s.dir),
		"policy.json":     `{"default": [{"type": "insecureAcceptAnything"}]}`,
		"registries.conf": "unqualified-search-registries = []\n" + mirrored("*.test", registry) + mirrored("localhost", registry),
	} {
		if err := os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// config leaves to CRI-O what a user would, but for paths, and the note on its last
// shutdown: it would remove images after a kill.
func (s crioSettings) config() string {
	manager, monitors := "cgroupfs", "pod"
	if systemdCgroups() {
		manager, monitors = "systemd", "system.slice"
	}
	return fmt.Sprintf(`[crio]
root = "%[1]s/root"
runroot = "%[1]s/state"
storage_driver = "overlay"
log_dir = "%[1]s/podlogs"
version_file = "%[1]s/version"
clean_shutdown_file = ""
[crio.api]
listen = "%[1]s/crio.sock"
stream_port = "0"
[crio.runtime]
default_runtime = "%[2]s"
cgroup_manager = "%[3]s"
container_exits_dir = "%[1]s/exits"
container_attach_socket_dir = "%[1]s/%[12]s"
namespaces_dir = "%[1]s/ns"
pinns_path = "%[4]s/pinns"
hooks_dir = ["%[1]s/hooks.d"]
cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
irqbalance_config_restore_file = "disable"
enable_pod_events = %[5]v
[crio.runtime.runtimes.%[2]s]
runtime_path = "%[6]s"
runtime_root = "%[1]s/oci"
runtime_type = "oci"
monitor_path = "%[7]s"
monitor_cgroup = "%[8]s"
[crio.image]
pause_image = "%[9]s"
signature_policy = "%[1]s/policy.json"
signature_policy_dir = "%[1]s/policies"
[crio.network]
network_dir = "%[10]s"
plugin_dirs = ["%[11]s"]
[crio.nri]
enable_nri = false
nri_listen = "%[1]s/nri.sock"
`, s.dir, s.runtime, manager, s.bin, s.events, s.runtimePath, s.conmon, monitors, Pause, s.network.ConfDir(), s.network.BinDir, attachDir)
}

// mirrored has images of a host pulled from addr over plain http.
func mirrored(host, addr string) string {
	return fmt.Sprintf("[[registry]]\nprefix = %q\nlocation = %q\ninsecure = true\n", host, addr)
}

// writeRegistry overrides what registries.conf says of a host.
func writeRegistry(dir, host, addr string) error {
	return os.WriteFile(filepath.Join(dir, "registries.conf.d", host+".conf"), []byte(mirrored(host, addr)), 0o644)
}

// reread has a runtime that reads where its registries are on SIGHUP alone do so, and
// waits until it has.
func (r *Runtime) reread() error {
	if !r.kind.rereads {
		return nil
	}
	before := r.timesReread()
	if err := r.process.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return err
	}
	return Until(context.Background(), 10*time.Second, func() error {
		if r.timesReread() == before {
			return errors.New("it has not read again where its registries are")
		}
		return nil
	})
}

func (r *Runtime) timesReread() int {
	b, _ := os.ReadFile(r.Log)
	return strings.Count(string(b), "Applied new registry configuration")
}

// modest makes a program that runs the OCI runtime at path without what it may not do
// here, and returns where it is: oom scores below zero need CAP_SYS_RESOURCE
// (containerd has a setting for that, restrict_oom_score_adj), CRI-O limits huge
// pages wherever the kernel can, though no such cgroup is mounted, and crun refuses
// machines on which cgroups of version 2 with controllers are mounted beside version 1.
func modest(dir, path string) (string, error) {
	var edits []string
	if managed.Here(dir, "").RestrictOOM {
		edits = append(edits, `-e 's/"oomScoreAdj": *-[0-9]*/"oomScoreAdj":0/'`)
	}
	if !unifiedCgroups() && !slices.Contains(hierarchies(), "/sys/fs/cgroup/hugetlb") {
		edits = append(edits, `-e '/"hugepageLimits": \[/,/\]/{/hugepageLimits/b;/\]/b;d}'`)
	}
	run := path + ` "$@"`
	hybrid := filepath.Base(path) == "crun" && slices.Contains(hierarchies(), hybridCgroups)
	if len(edits) == 0 && !hybrid {
		return path, nil
	}
	if hybrid {
		run = `unshare --mount --propagation slave sh -c 'umount -l ` + hybridCgroups + `; exec ` + path + ` "$@"' sh "$@"`
	}
	script := "#!/bin/sh\n"
	if len(edits) > 0 {
		script += `bundle= last=
for arg; do
	[ "$last" = --bundle ] && bundle=$arg
	last=$arg
done
[ -f "$bundle/config.json" ] && sed -i ` + strings.Join(edits, " ") + ` "$bundle/config.json"
`
	}
	file := filepath.Join(dir, "oci-"+filepath.Base(path))
	return file, os.WriteFile(file, []byte(script+"exec "+run+"\n"), 0o755)
}

// hybridCgroups is where version 2 is mounted beside version 1.
const hybridCgroups = "/sys/fs/cgroup/unified"

// Monitors returns the conmons of a container, which alone tell CRI-O of the container's end; none
// where the runtime is another one.
func (r *Runtime) Monitors(id string) []int {
	var pids []int
	for _, pid := range (remains{dir: filepath.Dir(r.Dir)}).processes(conmons) {
		if args := strings.Fields(commandLine(pid)); slices.Contains(args, id) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// unifiedCgroups says whether cgroups are those of version 2.
func unifiedCgroups() bool {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return err == nil
}

// hasAllCapabilities says whether processes here may have each capability that the kernel knows.
func hasAllCapabilities() bool {
	status, err := os.ReadFile("/proc/self/status")
	last, errLast := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil || errLast != nil {
		return false
	}
	_, line, _ := strings.Cut(string(status), "\nCapBnd:")
	var has uint64
	var highest int
	_, err = fmt.Sscanf(line, "%x", &has)
	_, errLast = fmt.Sscan(string(last), &highest)
	return err == nil && errLast == nil && has == 1<<(highest+1)-1
}
