package doctor

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/config"
	"monopod/agent/managed"
	"monopod/agent/message"
	"monopod/agent/print"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests/decode"
)

// patient is a machine on which all is well, until a test says otherwise.
type patient struct {
	*testing.T
	*Machine
	runtime *critest.Runtime
}

func healthy(t *testing.T) *patient {
	r := critest.Start(t)
	r.AddImage("pause:1")
	r.SetSandboxImage("pause:1")
	c, err := cri.Dial(r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	dir := t.TempDir()
	r.SetImageDir(dir)
	p := &patient{t, &Machine{Config: config.Default(), Runtime: c, Files: filepath.Join(dir, "files"), Now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}, r}
	p.Endpoints, p.Config.Listen, p.Config.Socket = []string{r.Endpoint()}, "127.0.0.1:0", filepath.Join(dir, "monopod.sock")
	p.Config.Manifests, p.Config.Root, p.Config.PodLogs = []string{filepath.Join(dir, "manifests")}, filepath.Join(dir, "root"), filepath.Join(dir, "logs")
	p.Config.ResolvConf = p.write("resolv.conf", "nameserver 10.0.0.1\n")
	for _, d := range []string{p.Config.Manifests[0], p.Config.Root} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
	p.write("proc/swaps", "Filename Type Size Used Priority\n")
	p.write("proc/filesystems", "nodev\tproc\n\text4\nnodev\toverlay\n")
	p.write("proc/sys/user/max_user_namespaces", "1000\n")
	p.write("proc/sys/kernel/seccomp/actions_avail", "kill\n")
	p.write("proc/1/comm", "systemd\n")
	r.SetCgroupDriver(rt.CgroupDriver_SYSTEMD)
	return p
}

// write writes a file below the machine's files, and returns its path.
func (p *patient) write(file, text string) string {
	path := filepath.Join(p.Files, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	return path
}

// found returns the findings of a check; those of the real disk and clock of the
// machine that runs the test are left out elsewhere.
func (p *patient) found(check string) (all []Finding) {
	for _, f := range Examine(p.Context(), p.Machine) {
		if f.Check == check {
			all = append(all, f)
		}
	}
	return all
}

// systemd makes systemd run the machine.
func (p *patient) systemd() { p.write("run/systemd/system/x", "") }

// elsewhere makes the runtime one of the usual sockets, none of which is there.
func (p *patient) elsewhere() {
	p.systemd()
	p.runtime.Stop()
	p.Endpoints = []string{"unix:///nix/containerd/containerd.sock", "unix:///nix/crio/crio.sock"}
}

// managed makes the runtime one that monopod starts.
func (p *patient) managed() { p.Config.ManagedRuntime = true }

func TestAManagedRuntimeIsToldAsSuch(t *testing.T) {
	p := healthy(t)
	p.managed()
	if found := p.found("runtime"); len(found) != 1 || found[0].Level != OK || !strings.Contains(found[0].Message, "started by monopod") {
		t.Errorf("%+v", found)
	}
}

func TestAHealthyMachineHasNothingToMend(t *testing.T) {
	p := healthy(t)
	for _, f := range Examine(t.Context(), p.Machine) {
		real := f.Check == "disk" || f.Check == "clock"
		if f.Level != OK && !real {
			t.Errorf("%+v", f)
		}
		if f.Remedy != "" && f.Level == OK || f.Message == "" {
			t.Errorf("%+v", f)
		}
	}
	if n := len(checks); n != 17 {
		t.Errorf("%d checks", n)
	}
}

func TestWhatIsWrongIsToldWithItsRemedy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	rows := []struct {
		name, check   string
		make          func(p *patient)
		level         Level
		tells, remedy string
	}{
		{"a runtime that is down", "runtime", func(p *patient) { p.runtime.Stop() }, Error, "", ""},
		{"a runtime that is not ready", "runtime", func(p *patient) {
			p.runtime.SetCondition(rt.RuntimeReady, false, "x", "its store is being repaired")
		}, Error, "is not ready: its store is being repaired", "containerd: restart containerd, and look at its log; CRI-O: restart crio, and look at its log"},
		{"a managed runtime that is not ready", "runtime", func(p *patient) {
			p.managed()
			p.runtime.SetCondition(rt.RuntimeReady, false, "BrokenStore", "")
		}, Error, "is not ready: BrokenStore", "root/containerd/log"},
		{"no runtime", "runtime", func(p *patient) { p.Endpoints = []string{"unix:///nix/x.sock"}; p.runtime.Stop() }, Error, "no socket at unix:///nix/x.sock", "install containerd or CRI-O, or name its socket with --runtime-endpoint"},
		{"a runtime that is installed and was stopped", "runtime", func(p *patient) {
			p.elsewhere()
			p.write("usr/lib/systemd/system/crio.service", "")
		}, Error, "no socket at unix:///nix/containerd/containerd.sock or unix:///nix/crio/crio.sock", "systemctl start crio, and look at journalctl --unit crio"},
		{"runtimes that are installed and were stopped", "runtime", func(p *patient) {
			p.elsewhere()
			p.write("usr/local/lib/systemd/system/crio.service", "")
			p.write("etc/systemd/system/containerd.service", "")
		}, Error, "no socket at", "systemctl start containerd, and look at journalctl --unit containerd; or systemctl start crio, and"},
		{"a runtime that is installed and was stopped, without a unit", "runtime", func(p *patient) {
			p.elsewhere()
			p.write("etc/init.d/containerd", "")
		}, Error, "no socket at", "start containerd, and look at its log"},
		{"a runtime that is installed and was stopped, in a container without systemd", "runtime", func(p *patient) {
			p.Endpoints = []string{"unix:///nix/containerd/containerd.sock"}
			p.runtime.Stop()
			p.write("lib/systemd/system/containerd.service", "")
		}, Error, "no socket at", "start containerd, and look at its log"},
		{"a managed runtime that is down with monopod", "runtime", func(p *patient) { p.managed(); p.runtime.Stop() }, Warning, "does not run, nor does monopod", "start monopod"},
		{"a managed runtime that is down", "runtime", func(p *patient) { p.managed(); p.Up = true; p.runtime.Stop() }, Error, "the managed runtime does not answer", "root/containerd/log"},
		{"a managed runtime of systemd's that is down", "runtime", func(p *patient) {
			p.managed()
			p.Up = true
			p.runtime.Stop()
			os.Mkdir(filepath.Join(p.Config.Root, managed.Folder), 0o711)
			os.WriteFile(filepath.Join(p.Config.Root, managed.Folder, "process.json"), []byte(`{"pid":7,"unit":"monopod-containerd-x.service"}`), 0o600)
		}, Error, "the managed runtime does not answer", "journalctl --unit monopod-containerd-x.service"},
		{"a managed runtime without a binary", "runtime", func(p *patient) { p.managed(); p.NoStart = managed.ErrNoBinary; p.runtime.Stop() }, Error, "there is no containerd in PATH: apt-get install containerd", ""},
		{"a managed runtime without plugins", "pod network", func(p *patient) { p.managed(); p.runtime.SetCondition(rt.NetworkReady, false, "x", "no plugins") }, Warning, "no plugins", "apt-get install containernetworking-plugins"},
		{"no network", "pod network", func(p *patient) { p.runtime.SetCondition(rt.NetworkReady, false, "x", "cni plugin not initialized") }, Warning, "cni plugin not initialized", "/etc/critest.d and the plugins that it names into /opt/critest"},
		{"an address that a power cut lost", "pod network", func(p *patient) { p.write("var/lib/cni/networks/pods/10.88.0.8", "") }, Warning, "var/lib/cni/networks/pods/10.88.0.8 is empty", `"dataDir": "/run/cni/networks"`},
		{"no pause image", "pause image", func(p *patient) { p.runtime.SetSandboxImage("pause:2") }, Warning, "pause:2 is not here", "crictl pull pause:2"},
		{"an unnamed pause image", "pause image", func(p *patient) { p.runtime.SetSandboxImage("") }, Warning, "no image is pinned", ""},
		{"no memory controller", "cgroups", func(p *patient) { p.write("sys/fs/cgroup/cgroup.controllers", "cpu pids") }, Error, "v2 without the controller memory", "cgroup_enable=memory"},
		{"a disabled controller of v1", "cgroups", func(p *patient) {
			os.Remove(p.file("sys/fs/cgroup/cgroup.controllers"))
			p.write("proc/cgroups", "#subsys_name hierarchy num_cgroups enabled\ncpu 1 1 1\nmemory 0 1 0\npids 2 1 1\n")
		}, Error, "v1 without the controller memory", "cgroup_enable=memory"},
		{"another driver", "cgroup driver", func(p *patient) { p.Config.CgroupDriver = "cgroupfs" }, Error, "monopod has cgroupfs and the runtime systemd", "leave out --cgroup-driver"},
		{"cgroupfs beside systemd", "cgroup driver", func(p *patient) { p.runtime.SetCgroupDriver(rt.CgroupDriver_CGROUPFS) }, Warning, "two that write to one tree", "SystemdCgroup"},
		{"a folder that is not there", "manifests", func(p *patient) { os.Remove(p.Config.Manifests[0]) }, Error, "is not there", "mkdir"},
		{"a folder that all may write", "manifests", func(p *patient) { os.Chmod(p.Config.Manifests[0], 0o777) }, Error, "by other users", "chmod go-w"},
		{"a manifest of somebody", "manifests", func(p *patient) {
			path := filepath.Join(p.Config.Manifests[0], "x.yaml")
			os.WriteFile(path, nil, 0o600)
			os.Chown(path, 1234, 1234)
		}, Error, "belongs to user 1234", "chown root"},
		{"a folder above that all may write", "manifests", func(p *patient) {
			p.Config.Manifests[0] = filepath.Join(p.Config.Manifests[0], "sub")
			os.Mkdir(p.Config.Manifests[0], 0o700)
			os.Chmod(filepath.Dir(p.Config.Manifests[0]), 0o777)
		}, Error, "manifests may be written by other users (mode 0777)", "or keep manifests elsewhere"},
		{"a folder that all may write, which the settings allow", "manifests", func(p *patient) {
			os.Chmod(p.Config.Manifests[0], 0o777)
			p.Config.InsecureManifests = true
		}, Warning, "by other users", "chmod go-w"},
		{"a folder that all may write, of an agent that ran before", "manifests", func(p *patient) {
			os.Chmod(p.Config.Manifests[0], 0o777)
			os.WriteFile(filepath.Join(p.Config.Root, "instance"), nil, 0o600)
		}, Warning, "by other users", "chmod go-w"},
		{"no folder", "manifests", func(p *patient) { p.Config.Manifests = nil }, Warning, "no folder", "--manifests"},
		{"1970", "clock", func(p *patient) { p.systemd(); p.Now = time.Unix(100, 0) }, Error, "it is " + string(message.Time(time.Unix(100, 0))) + ", says the clock", "timedatectl"},
		{"1970, without systemd", "clock", func(p *patient) { p.Now = time.Unix(100, 0) }, Error, ", says the clock", "have chronyd or ntpd keep it right"},
		{"swap", "swap", func(p *patient) { p.write("proc/swaps", "Filename\n/dev/sda2 partition\n") }, Warning, "on", "swapoff"},
		{"swap that is forbidden", "swap", func(p *patient) { p.write("proc/swaps", "Filename\n/dev/sda2 partition\n"); p.Config.FailSwapOn = true }, Error, "failSwapOn", "swapoff"},
		{"no overlay", "kernel", func(p *patient) { p.write("proc/filesystems", "\text4\n") }, Warning, "overlay", "modprobe overlay"},
		{"no user namespaces", "kernel", func(p *patient) { p.write("proc/sys/user/max_user_namespaces", "0\n") }, Warning, "hostUsers", "sysctl"},
		{"a kernel without user namespaces", "kernel", func(p *patient) { os.Remove(p.file("proc/sys/user/max_user_namespaces")) }, Warning, "hostUsers", "CONFIG_USER_NS"},
		{"no resolv.conf", "resolv.conf", func(p *patient) { p.Config.ResolvConf = "/nix" }, Warning, "no such file", "--resolv-conf"},
		{"a local name server", "resolv.conf", func(p *patient) { p.write("resolv.conf", "nameserver 127.0.0.53\n") }, Warning, "127.0.0.53", "systemd"},
		{"an empty resolv.conf", "resolv.conf", func(p *patient) { p.write("resolv.conf", "# no network yet\n") }, Warning, "names no name server", "--resolv-conf"},
		{"a local name server of IPv6", "resolv.conf", func(p *patient) { p.write("resolv.conf", "nameserver ::1\n") }, Warning, "names ::1", "systemd"},
		{"a resolv.conf that cannot be read", "resolv.conf", func(p *patient) { p.write("resolv.conf", "nameserver\n") }, Warning, "without an address", "--resolv-conf"},
		{"a port in use", "endpoint", func(p *patient) { p.Config.Listen = listener.Addr().String() }, Warning, "in use by another program: monopod starts", "sport"},
		{"an address that is not there yet", "endpoint", func(p *patient) { p.Config.Listen = "192.0.2.1:10255" }, Warning, "does not have 192.0.2.1:10255: monopod starts", "--listen"},
		{"a name without an address", "endpoint", func(p *patient) { p.Config.Listen = "no-such-name.invalid:10255" }, Warning, "no-such-name.invalid", "--listen"},
		{"a port that is none", "endpoint", func(p *patient) { p.Config.Listen = "127.0.0.1:nix" }, Error, "unknown port", "--listen"},
		{"no address", "endpoint", func(p *patient) { p.Config.Listen = "127.0.0.1:port:0" }, Error, "too many colons", "--listen"},
		{"what the agent reports of itself", "agent", func(p *patient) { p.Reports = []string{"the root dir cannot be written"} }, Warning, "the root dir cannot be written", ""},
		{"a kubelet", "other agents", func(p *patient) { p.Kubelet = "k3s (process 77)" }, Warning, "as k3s (process 77)", "--cgroup-root"},
		{"a root dir in use", "other agents", func(p *patient) {
			f, err := os.Create(filepath.Join(p.Config.Root, "lock"))
			if err == nil {
				p.Cleanup(func() { f.Close() })
				err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
			}
			if err != nil {
				p.Fatal(err)
			}
			f.WriteString("4711\n")
		}, Error, "in use by process 4711", "stop it"},
		{"sandboxes of others", "other agents", func(p *patient) {
			if _, err := p.Runtime.RunSandbox(p.Context(), &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "x", Namespace: "d", Uid: "u"},
				Labels: map[string]string{labelUID: "u"}}, ""); err != nil {
				p.Fatal(err)
			}
		}, Warning, "sandboxes of other agents: 1", ""},
		{"a setting that waits", "settings", func(p *patient) { p.Waits = []string{"root"} }, Warning, "root", "restart monopod"},
		{"a setting that nothing here serves", "settings", func(p *patient) { p.Config.Absent = []decode.Problem{{Field: "cpuManagerPolicy", Message: "no"}} }, Error, "cpuManagerPolicy: no", ""},
		{"a setting that nothing here serves, of an agent that ran before", "settings", func(p *patient) {
			p.Config.Absent = []decode.Problem{{Field: "cpuManagerPolicy", Message: "no"}}
			os.WriteFile(filepath.Join(p.Config.Root, "instance"), nil, 0o600)
		}, Warning, "cpuManagerPolicy: no", ""},
		{"settings that the agent refuses", "settings", func(p *patient) { p.Wrong = []string{"c.yaml:1:1: bad"} }, Error, "bad", ""},
		{"a setting without effect", "settings", func(p *patient) { p.Ignored = []string{"x: no effect"} }, Warning, "x: no effect", "remove"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := healthy(t)
			row.make(p)
			found := p.found(row.check)
			if !slices.ContainsFunc(found, func(f Finding) bool {
				return f.Level == row.level && strings.Contains(f.Message, row.tells) && strings.Contains(f.Remedy, row.remedy)
			}) {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// The sockets are root's, so that to others nothing seems to run: each finding would be untrue.
func TestNothingIsSaidToAUserWhoCannotLook(t *testing.T) {
	p := healthy(t)
	p.User = 1000
	found := Examine(t.Context(), p.Machine)
	if len(found) != 1 || found[0].Level != Error || !strings.Contains(found[0].Message, "user 1000") || !strings.Contains(found[0].Remedy, "root") {
		t.Errorf("found %+v", found)
	}
}

// A remedy may be copied into a shell, whatever others called the file that it names.
func TestARemedyRunsNothingThatANameHolds(t *testing.T) {
	for _, name := range []string{"a;touch $HOME`id`.yaml", "x y$(id>pwned).yaml", "it's.yaml", "-rf.yaml", "a&b|c>d.yaml", "new\nline.yaml", "*.yaml", "esc\x1b[2J.yaml"} {
		p := healthy(t)
		path := filepath.Join(p.Config.Manifests[0], name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		os.Chmod(path, 0o666)
		found := p.found("manifests")
		if len(found) != 1 {
			t.Fatalf("%q: found %+v", name, found)
		}
		out, err := exec.Command("bash", "-c", `chmod() { printf '%s\0' "$@"; }; `+found[0].Remedy).Output()
		if want := "go-w\x00" + path + "\x00"; err != nil || string(out) != want {
			t.Errorf("%q: %s is %q, %v", name, found[0].Remedy, out, err)
		}
		if print.OneLine(found[0].Remedy) != found[0].Remedy {
			t.Errorf("%q: %q is printed otherwise", name, found[0].Remedy)
		}
	}
	p := healthy(t)
	p.runtime.SetSandboxImage("pause:2;reboot")
	if found := p.found("pause image"); !strings.HasPrefix(found[0].Remedy, "crictl pull 'pause:2;reboot', or") {
		t.Errorf("an image: %s", found[0].Remedy)
	}
	p.Config.Manifests = []string{"/nowhere/$(reboot)"}
	if found := p.found("manifests"); found[0].Remedy != "mkdir --parents --mode 700 '/nowhere/$(reboot)'" {
		t.Errorf("a folder: %s", found[0].Remedy)
	}
}

// What mends containerd does nothing for CRI-O, whose units, files and commands have
// other names. Of a runtime that is not known, and does not answer, both are told.
func TestRemediesAreThoseOfTheRuntime(t *testing.T) {
	for _, row := range []struct {
		name, check string
		make        func(p *patient)
		remedy      string
	}{
		{"no pause image", "pause image", func(p *patient) { p.runtime.SetSandboxImage("pause:2") }, "crictl pull pause:2, or offline: podman load --input FILE"},
		{"cgroupfs beside systemd", "cgroup driver", func(p *patient) { p.runtime.SetCgroupDriver(rt.CgroupDriver_CGROUPFS) },
			`set cgroup_manager = "systemd" below [crio.runtime] in a file in /etc/crio/crio.conf.d; drain`},
		{"down", "runtime", func(p *patient) { p.Endpoints = []string{"unix://" + p.write("crio.sock", "")}; p.runtime.Stop() },
			"systemctl restart crio, and look at journalctl --unit crio"},
		{"without CRI v1", "runtime", func(p *patient) {
			p.Endpoints = []string{"unix://" + p.write("crio.sock", "")}
			p.runtime.Fault(critest.On("Version").Fail(codes.Unimplemented, "unknown service"))
		}, "upgrade CRI-O to 1.21"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := healthy(t)
			p.runtime.LikeCRIO()
			p.systemd()
			p.write("usr/lib/systemd/system/crio.service", "")
			row.make(p)
			if found := p.found(row.check); len(found) != 1 || !strings.HasPrefix(found[0].Remedy, row.remedy) || strings.Contains(found[0].Remedy, "containerd") {
				t.Errorf("found %+v", found)
			}
		})
	}
	p := healthy(t)
	p.Endpoints = []string{"unix://" + p.write("containerd.sock", "")}
	p.systemd()
	p.write("usr/local/lib/systemd/system/containerd.service", "") // where containerd's own manual puts it
	p.runtime.Stop()
	if found := p.found("runtime"); len(found) != 1 || found[0].Remedy != "systemctl restart containerd, and look at journalctl --unit containerd" {
		t.Errorf("found %+v", found)
	}
	p.Endpoints = []string{"unix://" + p.write("cri.sock", "")}
	if found := p.found("runtime"); len(found) != 1 || !strings.Contains(found[0].Remedy, "containerd: systemctl restart containerd") || !strings.Contains(found[0].Remedy, "; CRI-O: restart crio, and look at its log") {
		t.Errorf("found %+v", found)
	}
}

// crio wipe deletes all images at a boot after a power cut.
func TestImagesThatCRIOWipesAreToldOf(t *testing.T) {
	const wants, unit = "etc/systemd/system/multi-user.target.wants", "crio-wipe.service"
	for _, row := range []struct {
		name string
		make func(p *patient)
		told bool
	}{
		{"wiped", func(p *patient) {}, true},
		{"no unit", func(p *patient) { os.Remove(p.file(wants + "/" + unit)) }, false},
		{"a masked unit", func(p *patient) { os.Symlink("/dev/null", p.file("etc/systemd/system/"+unit)) }, false},
		{"an overwritten unit", func(p *patient) { p.write("etc/systemd/system/"+unit, "") }, true},
		{"no clean_shutdown_file", func(p *patient) { os.Remove(p.file(shutdownSeen)) }, false},
		{"before the first start", func(p *patient) { p.runtime.Stop() }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := healthy(t)
			p.write(shutdownSeen, "")
			p.write(wants+"/other.service", "")
			if err := os.Symlink("/usr/lib/systemd/system/"+unit, p.file(wants+"/"+unit)); err != nil {
				t.Fatal(err)
			}
			if found := p.found("images"); len(found) != 0 {
				t.Errorf("on another runtime: found %+v", found)
			}
			p.runtime.LikeCRIO()
			row.make(p)
			found := p.found("images")
			if told := len(found) == 1 && found[0].Level == Warning && strings.HasPrefix(found[0].Remedy, "systemctl disable crio-wipe.service"); told != row.told || !told && len(found) > 0 {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// An agent that is up has its port and its root dir itself.
func TestTheAgentIsNoNeighbourOfItself(t *testing.T) {
	p := healthy(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p.Up, p.Config.Listen = true, l.Addr().String()
	if f := p.found("endpoint"); len(f) != 1 || f[0].Level != OK {
		t.Errorf("%+v", f)
	}
}

// What an agent could not bind is not called served: its report says why.
func TestAnAddressThatTheAgentDoesNotServeIsNotCalledServed(t *testing.T) {
	p := healthy(t)
	p.Up, p.NoTCP, p.Config.Listen = true, true, "no-such-name.invalid:10255"
	if f := p.found("endpoint"); len(f) != 1 || !strings.Contains(f[0].Message, "does not serve no-such-name.invalid:10255") {
		t.Errorf("%+v", f)
	}
}

func TestFindingsArePrintedWithTheirRemedies(t *testing.T) {
	var out strings.Builder
	if err := Print(&out, "", []Finding{{"disk", OK, "room", ""}, {"swap", Warning, "on", "swapoff --all"}}); err != nil {
		t.Fatal(err)
	}
	want := "ok       disk           room\nwarning  swap           on\n                        -> swapoff --all\nerrors: 0, warnings: 1\n"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// A runtime that takes calls and answers none is one finding, and is waited for once.
func TestARuntimeThatHangsIsOneFinding(t *testing.T) {
	p := healthy(t)
	p.Runtime.Timeouts.Query = 100 * time.Millisecond
	p.runtime.LikeCRIO()
	asks := []string{"Version", "Status", "RuntimeConfig", "ImageFsInfo", "ImageStatus", "ListImages", "ListContainers", "ListPodSandbox"}
	for _, call := range asks {
		p.runtime.Fault(critest.On(call).Hang())
	}
	p.write(shutdownSeen, "")
	for _, f := range Examine(t.Context(), p.Machine) {
		if real := f.Check == "disk" || f.Check == "clock"; f.Level != OK && !real && f.Check != "runtime" {
			t.Errorf("%+v", f)
		}
	}
	waits := 0
	for _, call := range asks {
		waits += p.runtime.Count(call)
	}
	if waits != 1 {
		t.Errorf("%d calls are waited for", waits)
	}
}
