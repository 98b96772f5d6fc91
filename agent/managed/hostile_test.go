package managed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"monopod/cri/critest"
)

// sleeper is a runtime of a root dir whose containerd is a program that only sleeps.
func sleeper(t *testing.T, service bool) *Runtime {
	t.Helper()
	root := t.TempDir()
	r := &Runtime{settings: Settings{Root: root, Service: service, Log: slog.New(slog.DiscardHandler)}, dir: filepath.Join(root, Folder), tried: make(chan struct{})}
	r.binary = filepath.Join(root, "sleeping")
	r.install(t, Version{1, 6, 0})
	if err := os.Mkdir(r.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return r
}

// install makes the program that sleeps another version.
func (r *Runtime) install(t *testing.T, v Version) {
	t.Helper()
	text := "#!/bin/sh\n[ \"$1\" = --version ] && exec echo containerd x " + v.String() + "\nexec sleep 600\n"
	if err := os.WriteFile(r.binary, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, pid int) {
	t.Cleanup(func() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	})
}

// A child becomes containerd only once it is noted: what an agent that is killed before that has
// started ends by itself.
func TestAChildThatIsNotNotedRunsNothing(t *testing.T) {
	for _, row := range []struct {
		text string
		runs bool
	}{{"", false}, {"\n", true}} {
		file := filepath.Join(t.TempDir(), "ran")
		wait, begin, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command("/bin/sh", "-c", child, "sh", "touch", file)
		c.ExtraFiles = []*os.File{wait}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		_, err = begin.WriteString(row.text)
		begin.Close()
		wait.Close()
		if waited := c.Wait(); err != nil || (waited == nil) != row.runs {
			t.Errorf("after %q: %v, %v", row.text, err, waited)
		}
		if _, err := os.Stat(file); (err == nil) != row.runs {
			t.Errorf("after %q: the program's file: %v", row.text, err)
		}
	}
}

// The supervisor tries again and again: each try ends what it started.
func TestATryThatFailsLeavesNoProcess(t *testing.T) {
	r := sleeper(t, false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread, with its filter, ends with the goroutine
		refusePidfd(t)
		for range 3 {
			if err := r.spawn(t.Context()); err == nil {
				t.Error("pidfd_open works")
			} else {
				t.Log(err)
			}
			if r.process != nil {
				r.process.stop(time.Second)
				r.process = nil
			}
		}
	}()
	<-done
	left := 0
	for _, p := range processes() {
		if p.parent == os.Getpid() && len(p.args) > 1 && string(p.args[0]) == "sleep" && string(p.args[1]) == "600" {
			left++
			kill(t, p.pid)
		}
	}
	if left > 0 {
		t.Errorf("three failed tries left %d processes running", left)
	}
}

// refusePidfd has pidfd_open answer EINVAL for this thread.
func refusePidfd(t *testing.T) {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: unix.SYS_PIDFD_OPEN},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Skip(err)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		t.Skip(e)
	}
}

// systemd stands for systemd: a unit is loaded as long as a process is in its cgroup (systemd,
// unit_may_gc: "Units with active processes should never be collected"), and systemd-run refuses the
// name of a unit that is loaded.
const systemdRun = `#!/bin/sh
dir=%[1]s
while [ "$1" != --unit ]; do shift; done
unit=$2
for pid in $(cat $dir/$unit 2>/dev/null); do
	if kill -0 $pid 2>/dev/null; then
		echo "Failed to start transient service unit: Unit x.service was already loaded or has a fragment file." >&2; exit 1
	fi
done
setsid sleep 600 >/dev/null 2>&1 </dev/null & main=$!
setsid sleep 600 >/dev/null 2>&1 </dev/null & shim=$!
echo $main $shim | tee $dir/$unit >>$dir/all; echo $main >$dir/main
`

func fakeSystemd(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"systemd-run": fmt.Sprintf(systemdRun, dir), "systemctl": "#!/bin/sh\ncat " + dir + "/main\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Cleanup(func() {
		b, _ := os.ReadFile(filepath.Join(dir, "all"))
		for _, pid := range strings.Fields(string(b)) {
			_ = exec.Command("kill", "-9", pid).Run()
		}
	})
	return dir
}

// It is promised that "When it dies it is started again ...; containers run on." The shims of containers
// are in the cgroup of the unit.
func TestAServiceThatDiedWithContainersIsStartedAgain(t *testing.T) {
	fakeSystemd(t)
	r := sleeper(t, true)
	if err := r.spawn(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.process.signal(syscall.SIGKILL)
	r.process.wait(t.Context())
	r.process = nil
	if err := r.spawn(t.Context()); err != nil {
		t.Error(err)
	}
}

// The agent is stopped, or killed, between systemd-run and the note: the next one must get its runtime.
func TestAServiceThatWasStartedAndNotNotedIsFound(t *testing.T) {
	fakeSystemd(t)
	r := sleeper(t, true)
	p, err := r.spawnService(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.note(identity{Boot: boot, Unit: p.Unit}); err != nil { // as before systemd has started it
		t.Fatal(err)
	}
	next, err := r.takeOver(t.Context())
	if err != nil || next == nil || next.PID != p.PID {
		t.Errorf("taken over is %+v (%v), want process %d", next, err, p.PID)
	}
}

// One containerd runs in a folder. While it cannot be seen whether it does, as where the agent has no file
// descriptor left, another one is not started, and what it has in this boot is not removed.
func TestWhatMayRunIsNotStartedAgain(t *testing.T) {
	r := sleeper(t, false)
	if err := r.spawn(t.Context()); err != nil {
		t.Fatal(err)
	}
	kill(t, r.process.PID)
	state := r.file("state", "of-this-boot")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	next := &Runtime{settings: r.settings, dir: r.dir, binary: r.binary}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	blind, unseen := next.takeOver(t.Context())
	forgot := next.forgetFormerBoot(t.Context())
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if blind != nil || !errors.Is(unseen, unix.EMFILE) || !errors.Is(forgot, unix.EMFILE) {
		t.Errorf("without file descriptors: %+v, %v, %v", blind, unseen, forgot)
	}
	if _, err := os.Stat(state); err != nil {
		t.Errorf("what it has in this boot: %v", err)
	}
	if p, err := next.takeOver(t.Context()); err != nil || p == nil || p.PID != r.process.PID {
		t.Errorf("taken over is %+v (%v), want process %d", p, err, r.process.PID)
	}
}

// It is promised that "removes that with all that it made: images, mounts, ...". TMPDIR, or the folder above --dir,
// may be a link: the kernel names mounts without it.
func TestMountsBelowALinkAreUnmounted(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	real := filepath.Join(folder, "real")
	point := filepath.Join(real, Folder, "state", "rootfs")
	if err := os.MkdirAll(point, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", point, "tmpfs", 0, ""); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(point, unix.MNT_DETACH) })
	root, err := resolved(link)
	if err != nil {
		t.Fatal(err)
	}
	r := &Runtime{settings: Settings{Root: link, Log: slog.New(slog.DiscardHandler)}, dir: filepath.Join(root, Folder)}
	if err := r.Remove(context.Background()); err != nil {
		t.Error(err)
	}
	for _, m := range mounts() {
		if m.point == point {
			t.Error("the mount is left: ", m.point)
		}
	}
}

// A read-only cgroup mount elsewhere, as in a chroot, is no reason: /sys/fs/cgroup can be changed.
func TestAReadOnlyCgroupElsewhereIsNoMatter(t *testing.T) {
	all := uint64(1)<<capSysAdmin | 1<<capSysResource
	trees := parseMounts(strings.NewReader("30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n" +
		"99 25 0:26 / /srv/chroot/sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n"))
	if err := (rights{0, all, trees}).check(); err != nil {
		t.Error(err)
	}
}

// packaging/monopod.service bounds the agent's capabilities, and CAP_NET_ADMIN is none of them. What the agent finds
// out about iptables is for containerd, which systemd starts with all rights.
func TestIptablesAreFoundFromTheUnitsRights(t *testing.T) {
	if hasConf(machineConf) {
		t.Skip("this machine has a CNI configuration")
	}
	dir := t.TempDir()
	for _, name := range []string{"loopback", "bridge", "host-local", "portmap"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pluginDirs = []string{dir}
	if os.Getenv("MONOPOD_TEST_INSIDE") != "" {
		if n := findNetwork(dir, true); !n.filters {
			t.Errorf("with the rights of the unit: %s", n.warning)
		}
		return
	}
	if n := findNetwork(dir, true); !n.filters {
		t.Skip(n.warning)
	}
	c := exec.Command("setpriv", "--no-new-privs", "--bounding-set", "-all,+chown,+dac_override,+dac_read_search,+fowner,+fsetid,+kill,+net_bind_service,+sys_admin,+sys_ptrace,+sys_resource",
		os.Args[0], "-test.cpu=1", "-test.run", t.Name()+"$")
	c.Env = append(os.Environ(), "MONOPOD_TEST_INSIDE=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// On a full disk a containerd that starts finds nothing of the containers that run: they would be there twice. The one
// that runs is taken over with the settings that it has.
func TestAFullDiskIsNoPlaceToStart(t *testing.T) {
	r := sleeper(t, false)
	if err := unix.Mount("tmpfs", r.dir, "tmpfs", 0, "size=8m,nr_inodes=100"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(r.dir, unix.MNT_DETACH) })
	r.version, r.network = Version{1, 6, 0}, network{confDir: machineConf, binDirs: []string{"/usr/lib/cni"}}
	if err := errors.Join(r.configure(t.Context()), r.spawn(t.Context())); err != nil {
		t.Fatal(err)
	}
	kill(t, r.process.PID)
	if text, err := os.ReadFile(r.file("config.toml")); err != nil || !strings.Contains(string(text), `snapshotter = "overlayfs"`) {
		t.Skipf("no overlay can be made of a tmpfs here: %v", err)
	}
	fill(t, r.dir)
	if err := r.configure(t.Context()); err != nil || r.changed {
		t.Errorf("for want of room its settings are others (%v), so the next agent starts it again", err)
	}
	next, err := r.takeOver(t.Context())
	if err != nil || next == nil || next.PID != r.process.PID {
		t.Errorf("the next agent takes over %+v (%v), not process %d", next, err, r.process.PID)
	}
	r.process.stop(0)
	if err := r.spawn(t.Context()); err == nil || !strings.Contains(err.Error(), "0 KiB are left on the disk of "+r.dir) {
		t.Fatalf("without room: %v", err)
	}
	if err := os.Remove(r.file("much")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(r.file("0")), r.spawn(t.Context())); err != nil {
		t.Errorf("with room again: %v", err)
	}
	kill(t, r.process.PID)
}

// It is promised that the log is kept, "and as much of the former one": a containerd that died is started again at once,
// and what it said in the end is more than the one line that is told of it.
func TestTheLogOfOneThatDiedIsKept(t *testing.T) {
	r := sleeper(t, false)
	said := "panic: runtime error\n\ngoroutine 1 [running]:\n"
	if err := os.WriteFile(r.file("log"), []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.spawn(t.Context()); err != nil {
		t.Fatal(err)
	}
	kill(t, r.process.PID)
	if got, err := os.ReadFile(r.file("log.1")); err != nil || string(got) != said {
		t.Errorf("of the former log is left %q: %v", got, err)
	}
	if got, err := os.ReadFile(r.file("log")); err != nil || strings.Contains(string(got), said) {
		t.Errorf("the log of the next one is %q: %v", got, err)
	}
}

// It is promised that "the settings are written for the version that is found at each start of containerd": the agent may
// run on while the package is updated, or the version before comes back.
func TestSettingsAreOfTheVersionThatStarts(t *testing.T) {
	r := sleeper(t, false)
	r.network = network{confDir: machineConf, binDirs: []string{"/usr/lib/cni"}}
	for _, row := range []struct {
		version Version
		want    string
	}{{Version{2, 1, 0}, "version = 3\n"}, {Version{1, 6, 20}, "version = 2\n"}} {
		r.install(t, row.version)
		if r.version.Major == 0 {
			r.version = row.version // as New found it
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_ = r.Start(ctx) // what only sleeps does not answer
		cancel()
		if r.process == nil {
			t.Fatalf("%s was not started", row.version)
		}
		r.process.stop(0) // it dies
		r.process = nil
		if text, err := os.ReadFile(r.file("config.toml")); err != nil || !strings.HasPrefix(string(text), row.want) {
			t.Errorf("%s was started with the settings of another version: %v\n%s", row.version, err, text)
		}
	}
}

// "Every retry has a count and a back-off": after a crash a containerd looks for its containers before it answers. If
// that takes longer than it is waited for, the same time once more does not help.
func TestOneThatDoesNotAnswerHasTwiceTheTimeNext(t *testing.T) {
	r := sleeper(t, false)
	r.network = network{confDir: machineConf, binDirs: []string{"/usr/lib/cni"}}
	r.version = Version{1, 6, 0}
	r.patience = 100 * time.Millisecond
	for _, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
		err := r.Start(t.Context())
		if r.process == nil {
			t.Fatal(err)
		}
		r.process.stop(0)
		r.process = nil
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("it has not answered for %s; the next one has %s: see %s", want, 2*want, r.file("log"))) {
			t.Errorf("want an error after %s, got: %v", want, err)
		}
	}
	r.patience = mostPatience - time.Second
	played := critest.Start(t)
	if err := os.Symlink(strings.TrimPrefix(played.Endpoint(), "unix://"), r.socket()); err != nil {
		t.Fatal(err)
	}
	err := r.Start(t.Context())
	if r.process == nil {
		t.Fatal(err)
	}
	r.process.stop(0)
	if err != nil || r.patience != startPatience {
		t.Errorf("with an answer the next one has %s: %v", r.patience, err)
	}
}

// At a boot Docker and firewalls hold the lock of iptables; iptables(8): "by default, the program will exit if the lock
// cannot be obtained", -w makes it wait.
func TestIptablesThatAreInUseAreThere(t *testing.T) {
	dir := t.TempDir()
	busy := "#!/bin/sh\nfor a; do [ \"$a\" = -w ] && exit 0; done\necho 'Another app is currently holding the xtables lock.' >&2; exit 4\n"
	if err := os.WriteFile(filepath.Join(dir, "iptables"), []byte(busy), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if !hasFilters(false) {
		t.Error("pods get no host ports: no iptables works here")
	}
}

// It is promised that with less than 4 MiB left "it is taken over and not started": also where it was updated meanwhile,
// or where its settings are others for another reason.
func TestNewSettingsWaitForRoom(t *testing.T) {
	r := sleeper(t, false)
	if err := unix.Mount("tmpfs", r.dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(r.dir, unix.MNT_DETACH) })
	r.version, r.network = Version{1, 6, 0}, network{confDir: machineConf, binDirs: []string{"/usr/lib/cni"}}
	if err := errors.Join(r.configure(t.Context()), r.spawn(t.Context())); err != nil {
		t.Fatal(err)
	}
	running := r.process.PID
	kill(t, running)
	if err := os.WriteFile(r.file("much"), make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func() {
		r.process = nil
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_ = r.Start(ctx) // what only sleeps does not answer
	}
	r.install(t, Version{2, 1, 0})
	start()
	if r.process == nil || r.process.PID != running || r.process.ended() {
		t.Fatalf("without room: process %d was ended, and is replaced by %+v", running, r.process)
	}
	if err := os.Remove(r.file("much")); err != nil {
		t.Fatal(err)
	}
	start()
	if r.process == nil || r.process.PID == running {
		t.Fatalf("with room: process %d goes on with the settings of another version: %+v", running, r.process)
	}
	kill(t, r.process.PID)
}

// It is promised that on a full disk a containerd that runs is taken over: also where plugins or iptables came or went.
func TestAnotherNetworkWaitsForRoom(t *testing.T) {
	r := sleeper(t, false)
	if err := unix.Mount("tmpfs", r.dir, "tmpfs", 0, "size=8m,nr_inodes=100"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(r.dir, unix.MNT_DETACH) })
	r.version, r.network = Version{1, 6, 0}, network{dir: r.dir, confDir: r.file("net.d"), binDirs: []string{"/x"}, plugins: "/x"}
	if err := errors.Join(r.configure(t.Context()), r.spawn(t.Context())); err != nil {
		t.Fatal(err)
	}
	running := r.process.PID
	kill(t, running)
	fill(t, r.dir)
	r.network.filters, r.process = true, nil
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := r.Start(ctx) // what only sleeps does not answer
	if r.process == nil || r.process.PID != running {
		t.Errorf("process %d is not taken over: %v", running, err)
	}
}

// An agent that is killed after it has found out that the settings are others: the next one finds that out, too.
func TestNewSettingsAreNotForgotten(t *testing.T) {
	r := sleeper(t, false)
	r.version, r.network = Version{1, 6, 0}, network{confDir: machineConf, binDirs: []string{"/usr/lib/cni"}}
	if err := errors.Join(r.configure(t.Context()), r.spawn(t.Context())); err != nil {
		t.Fatal(err)
	}
	kill(t, r.process.PID)
	for range 2 {
		r.version = Version{2, 1, 0}
		if err := r.configure(t.Context()); err != nil || !r.changed {
			t.Errorf("%v: the containerd of 1.6 goes on with its settings", err)
		}
	}
}

// fill leaves no room on the disk of a folder, neither for content nor for another file.
func fill(t *testing.T, dir string) {
	t.Helper()
	much, err := os.Create(filepath.Join(dir, "much"))
	if err != nil {
		t.Fatal(err)
	}
	defer much.Close()
	for err == nil {
		_, err = much.Write(make([]byte, 4096))
	}
	full := err
	err = nil
	for k := 0; err == nil; k++ {
		err = unix.Mknod(filepath.Join(dir, fmt.Sprint(k)), unix.S_IFREG, 0)
	}
	if !errors.Is(full, syscall.ENOSPC) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(full, err)
	}
}

// Users of pods with user namespaces pass through the folder, also with the umask of the unit.
func TestTheFolderCanBePassedWithTheUnitsUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	r := sleeper(t, false)
	if err := os.Remove(r.dir); err != nil {
		t.Fatal(err)
	}
	r.version, r.network = Version{1, 6, 0}, network{confDir: machineConf, binDirs: []string{"/usr/lib/cni"}}
	if err := r.configure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i, err := os.Stat(r.dir); err != nil || i.Mode().Perm() != 0o711 {
		t.Errorf("%s is %v", r.dir, i.Mode())
	}
}

// It is promised that "Nothing else is ever sent a signal." Any user may name a process as a shim; it is another user's.
func TestAProcessOfAnotherUserIsNoShim(t *testing.T) {
	r := sleeper(t, false)
	c := &exec.Cmd{Path: "/bin/sh", Args: []string{"containerd-shim-mine", "-c", "sleep 600; :", "-address", r.socket()}, Dir: "/",
		SysProcAttr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}}
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() })
	time.Sleep(100 * time.Millisecond)
	if err := r.Remove(t.Context()); err != nil {
		t.Log(err)
	}
	select {
	case err := <-ended:
		t.Errorf("it was killed: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
}
