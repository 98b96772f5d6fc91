package packaging

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	mark = "0123456789abcdef"
	uid  = "5d867ea3-1776"
)

// machine is what a purge sees: a root dir with a pod, processes, cgroups and programs.
type machine struct {
	*testing.T
	dir  string
	root string // the root dir, as the package names it
}

func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	m := &machine{t, dir, dir + "/root"}
	m.put("root/instance", mark+"\n")
	m.put("root/status/runtime.json", "{\n  \"up\": true,\n  \"endpoint\": \"unix:///run/x.sock\"\n}\n")
	m.put("root/pods/"+uid+"/pod.json", "{}")
	m.put("proc/self/mountinfo", "22 1 0:20 / / rw - ext4 /dev/sda rw\n")
	m.put("proc/7/mountinfo", "22 1 0:20 / / rw - ext4 /dev/sda rw\n")
	m.put("cgroup/kubepods/podother/cgroup.procs", "99\n") // a kubelet's
	m.program("crictl", "exit 1")
	m.program("ctr", "exit 1")
	m.program("ip", "exit 1")
	return m
}

func (m *machine) put(name, text string) {
	m.Helper()
	path := filepath.Join(m.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		m.Fatal(err)
	}
}

// program is a shell script that takes the place of a program, and notes how it is called.
func (m *machine) program(name, script string) {
	m.Helper()
	m.put("bin/"+name, "#!/bin/sh\necho "+name+" \"$@\" >>"+m.dir+"/calls\n"+script+"\n")
	if err := os.Chmod(filepath.Join(m.dir, "bin", name), 0o755); err != nil {
		m.Fatal(err)
	}
}

// purge runs the script on this machine, and returns what it says.
func (m *machine) purge() string {
	m.Helper()
	text, err := os.ReadFile("postrm")
	if err != nil {
		m.Fatal(err)
	}
	script := string(text)
	for was, is := range map[string]string{"root=/var/lib/monopod\n": "root=" + m.root + "\n", "cgroups=/sys/fs/cgroup\n": "cgroups=" + m.dir + "/cgroup\n",
		"proc=/proc\n": "proc=" + m.dir + "/proc\n", "rm -f /etc/systemd/logind.conf.d/99-monopod.conf\n": ":\n", "command -v deb-systemd-helper": "false"} {
		if !strings.Contains(script, was) {
			m.Fatalf("the script has no %q", was)
		}
		script = strings.Replace(script, was, is, 1)
	}
	m.put("postrm", script)
	sh := exec.Command("/bin/sh", filepath.Join(m.dir, "postrm"), "purge")
	sh.Env = append(os.Environ(), "PATH="+m.dir+"/bin:"+os.Getenv("PATH"))
	said, err := sh.CombinedOutput()
	if err != nil {
		m.Errorf("the purge fails: %v: %s", err, said)
	}
	return string(said)
}

// calls returns how the programs were called.
func (m *machine) calls() string {
	m.Helper()
	calls, err := os.ReadFile(filepath.Join(m.dir, "calls"))
	if err != nil {
		m.Error(err)
	}
	return string(calls)
}

func (m *machine) stays() bool {
	_, err := os.Stat(filepath.Join(m.dir, "root", "pods", uid))
	return err == nil
}

func TestAPurgeRemovesNothingOfPodsThatRun(t *testing.T) {
	const inContainer = "30 22 0:20 /var/lib/monopod/pods/" + uid + "/etc-hosts//deleted /etc/hosts rw - ext4 /dev/sda rw\n"
	for _, row := range []struct {
		name    string
		prepare func(m *machine)
		stays   bool
	}{
		{"nothing runs", func(*machine) {}, false},
		{"a process is in the pod's cgroup", func(m *machine) { m.put("cgroup/kubepods/besteffort/pod"+uid+"/c/cgroup.procs", "12\n") }, true},
		{"a process is in the pod's slice", func(m *machine) {
			m.put("cgroup/kubepods.slice/kubepods-pod"+strings.ReplaceAll(uid, "-", "_")+".slice/c/cgroup.procs", "12\n")
		}, true},
		{"the pod has no cgroup, and a container", func(m *machine) { m.put("proc/8/mountinfo", inContainer) }, true},
		{"the runtime has it running", func(m *machine) { m.program("crictl", "echo 5c73085b6992") }, true},
		{"the runtime that is asked by ctr has it running", func(m *machine) {
			if err := os.Remove(filepath.Join(m.dir, "bin", "crictl")); err != nil {
				m.Fatal(err)
			}
			m.program("ctr", `case "$*" in *tasks*) printf 'TASK PID STATUS\nother 1 RUNNING\nours 2 RUNNING\n';; *) printf 'dead\nours\n';; esac`)
		}, true},
		{"the runtime has strangers' pods", func(m *machine) {
			m.program("crictl", `case "$*" in *"--label monopod.instance=`+mark+`"*) ;; *) echo strangers;; esac`)
		}, false},
		{"a stopped pod has a volume that is mounted", func(m *machine) {
			m.put("proc/self/mountinfo", "40 22 0:40 / "+m.dir+"/root/pods/"+uid+"/volumes/s rw - tmpfs tmpfs rw\n")
			m.program("umount", "")
		}, false},
		{"and is in use", func(m *machine) {
			m.put("proc/self/mountinfo", "40 22 0:40 / "+m.dir+"/root/pods/"+uid+"/volumes/s rw - tmpfs tmpfs rw\n")
			m.program("umount", "exit 32")
		}, true},
		{"a folder of it is a disk, which cannot be removed", func(m *machine) { m.program("rm", "exit 1") }, true},
		{"the root dir is a link", func(m *machine) {
			if err := errors.Join(os.Rename(m.dir+"/root", m.dir+"/data"), os.Symlink(m.dir+"/data", m.dir+"/root")); err != nil {
				m.Fatal(err)
			}
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newMachine(t)
			row.prepare(m)
			said := m.purge()
			if strings.Contains(said, "root/volumes has") {
				t.Errorf("there are no such volumes; said %s", said)
			}
			if m.stays() != row.stays || row.stays != strings.Contains(said, "stays") {
				t.Errorf("the root dir stays: %v, want %v; said %s", m.stays(), row.stays, said)
			}
			if strings.Contains(said, "rmp -fa") || strings.Contains(said, "pods run on") && !strings.Contains(said, "monopod stop --all") {
				t.Errorf("said %s", said)
			}
		})
	}
}

// What was asked of the runtime is about the pods of this root dir, at the endpoint that
// the agent had.
func TestAPurgeAsksTheRuntimeOfTheAgent(t *testing.T) {
	m := newMachine(t)
	m.purge()
	if want := "crictl --runtime-endpoint unix:///run/x.sock pods --quiet --state ready --label monopod.instance=" + mark + "\n"; m.calls() != want {
		t.Errorf("called %q, want %q", m.calls(), want)
	}
}

// The kernel names mounts without links.
func TestAPurgeUnmountsBelowALink(t *testing.T) {
	m := newMachine(t)
	if err := os.Symlink(".", m.dir+"/var"); err != nil {
		t.Fatal(err)
	}
	m.root = m.dir + "/var/root"
	at := m.dir + "/root/pods/" + uid + "/volumes/s"
	m.put("proc/self/mountinfo", "40 22 0:40 / "+at+" rw - tmpfs tmpfs rw\n")
	m.program("umount", "")
	said := m.purge()
	if calls := m.calls(); !strings.Contains(calls, "umount "+at+"\n") || m.stays() {
		t.Errorf("called %q, said %s; the pod's folder stays: %t", calls, said, m.stays())
	}
}

// Nothing else ends it once the agent is gone, and it would write where nothing is any more.
func TestAPurgeEndsTheContainerdOfTheAgent(t *testing.T) {
	for _, row := range []struct {
		what string
		file string // that the process has as its settings, below the root dir
		ends bool
	}{
		{"the agent's own", "containerd/config.toml", true},
		{"another process has its number now", "other/config.toml", false},
	} {
		t.Run(row.what, func(t *testing.T) {
			m := newMachine(t)
			m.put("root/"+row.file, "version = 2\n")
			at := m.dir + "/root/containerd/state/shm"
			m.put("proc/self/mountinfo", "40 22 0:40 / "+at+" rw - tmpfs tmpfs rw\n")
			m.program("umount", "")
			containerd := exec.Command("tail", "-f", m.root+"/"+row.file)
			if err := containerd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = containerd.Wait(); close(ended) }()
			pid := strconv.Itoa(containerd.Process.Pid)
			m.put("root/containerd/process.json", `{"pid":`+pid+`,"started":7,"boot":"b","unit":"monopod-containerd-x.service"}`)
			m.put("proc/"+pid+"/cmdline", "containerd\x00--config\x00"+m.root+"/"+row.file+"\x00")
			said := m.purge()
			if err := containerd.Process.Signal(syscall.Signal(0)); (err != nil) != row.ends {
				t.Errorf("it ends: %t, want %t; said %s", err != nil, row.ends, said)
			}
			_ = containerd.Process.Kill()
			<-ended
			bridge := fmt.Sprintf("ip link del monopod%x\n", sha256.Sum256([]byte(m.root+"/containerd")))[:len("ip link del monopod01234567")]
			if calls := m.calls(); !strings.Contains(calls, "umount "+at+"\n") || !strings.Contains(calls, bridge+"\n") || m.stays() {
				t.Errorf("called %q, want %q; said %s; the root dir stays: %t", calls, bridge, said, m.stays())
			}
		})
	}
}
