package managed

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestVersionsAreReadAsTheyAreSaid(t *testing.T) {
	for text, want := range map[string]Version{
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3": {1, 6, 20},
		"containerd github.com/containerd/containerd/v2 2.4.2+unknown ":               {2, 4, 2},
		"containerd containerd.io v1.7.29 442cb34bda9a6a0fed82a2ca7cade05c5c749582":   {1, 7, 29},
		"containerd github.com/containerd/containerd/v2 2.0.0-rc.1 x":                 {2, 0, 0},
	} {
		if got, err := ParseVersion(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := ParseVersion("containerd development"); err == nil {
		t.Error("a version was read of none")
	}
}

func TestSettingsAreNamedAsTheVersionNamesThem(t *testing.T) {
	c := Config{Dir: "/d", Socket: "/d/sock", Sandbox: "pause:1", Registries: "/certs", ConfDir: "/conf",
		BinDirs: []string{"/one", "/two"}, Snapshotter: "native", SystemdCgroup: true, RestrictOOM: true}
	for _, row := range []struct {
		version Version
		has     string
		hasNot  string
	}{
		{Version{1, 6, 0}, "version = 2\n", "version = 3"},
		{Version{1, 6, 20}, `sandbox_image = "pause:1"`, "pinned_images"},
		{Version{1, 7, 1}, `bin_dir = "/one"`, "bin_dirs"},
		{Version{1, 7, 1}, `grpc.v1.cri".containerd]` + "\n  snapshotter = \"native\"", "cri.v1"},
		{Version{2, 0, 4}, "version = 3\n", "grpc.v1.cri"},
		{Version{2, 0, 4}, `bin_dir = "/one"`, "bin_dirs"},
		{Version{2, 1, 0}, `bin_dirs = ["/one", "/two"]`, "bin_dir ="},
		{Version{2, 4, 2}, `pinned_images]` + "\n  sandbox = \"pause:1\"", "sandbox_image"},
		{Version{3, 0, 0}, `cri.v1.images"]` + "\n  snapshotter = \"native\"", "grpc.v1.cri"},
	} {
		text, err := c.TOML(row.version)
		if err != nil || !strings.Contains(text, row.has) || strings.Contains(text, row.hasNot) {
			t.Errorf("%s has no %q or has %q (%v):\n%s", row.version, row.has, row.hasNot, err, text)
		}
		for _, all := range []string{`root = "/d/root"`, `state = "/d/state"`, `address = "/d/sock"`, `path = "/d/opt"`, `Root = "/d/runc"`,
			`conf_dir = "/conf"`, `config_path = "/certs"`, "SystemdCgroup = true", "restrict_oom_score_adj = true"} {
			if !strings.Contains(text, all) {
				t.Errorf("%s has no %s:\n%s", row.version, all, text)
			}
		}
	}
	if _, err := c.TOML(Version{1, 5, 9}); err == nil || !strings.Contains(err.Error(), "install 1.6 or newer") {
		t.Errorf("1.5: %v", err)
	}
}

func TestASubnetIsFreeOfWhatTheMachineHas(t *testing.T) {
	first, last := func(int) int { return 0 }, func(n int) int { return n - 1 }
	for _, row := range []struct {
		why, used string
		pick      func(int) int
		want      string
	}{
		{"nothing is used", "", first, "10.0.0.0/24"},
		{"an address is in the first one", "10.0.0.7/32", first, "10.0.1.0/24"},
		{"a route goes through the middle", "10.0.0.0/15", first, "10.2.0.0/24"},
		{"a small route is inside", "10.0.0.128/30", first, "10.0.1.0/24"},
		{"the search starts at the end and goes round", "10.255.255.0/24", last, "10.0.0.0/24"},
		{"a VPN has the whole of it", "10.0.0.0/8", first, "172.16.0.0/24"},
		{"two are taken", "10.0.0.0/8 172.16.0.0/12", last, "192.168.255.0/24"},
		{"IPv6 is no matter", "fd00::/8 ::1/128", first, "10.0.0.0/24"},
		{"all are taken", "10.0.0.0/8 172.0.0.0/8 192.168.0.0/16", first, ""},
	} {
		var used []netip.Prefix
		for _, p := range strings.Fields(row.used) {
			used = append(used, netip.MustParsePrefix(p))
		}
		got, err := FreeSubnet(used, 24, row.pick)
		if (err != nil) != (row.want == "") || err == nil && got.String() != row.want {
			t.Errorf("%s: %v, %v", row.why, got, err)
		}
	}
}

func TestWhatTheMachineUses(t *testing.T) {
	routes := parseRoutes(strings.NewReader("Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n" +
		"eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\ntun0\t00000000\t0100080A\t0003\t0\t0\t0\t00000080\t0\n" +
		"tun0\t00000080\t0100080A\t0003\t0\t0\t0\t00000080\t0\neth0\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n"))
	servers := parseServers(strings.NewReader("# nameserver 1.1.1.1\nsearch x\nnameserver 10.9.8.7\nnameserver fd00::1%eth0\n"))
	if len(routes) != 1 || routes[0] != netip.MustParsePrefix("10.1.0.0/16") {
		t.Errorf("routes: %v", routes)
	}
	if len(servers) != 2 || servers[0] != netip.MustParsePrefix("10.9.8.7/32") {
		t.Errorf("name servers: %v", servers)
	}
}

func TestRightsThatAreMissing(t *testing.T) {
	all := uint64(1)<<capSysAdmin | 1<<capSysResource
	tree := parseMounts(strings.NewReader("30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"))
	readOnly := parseMounts(strings.NewReader("30 25 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n31 25 0:3 / /proc rw - proc proc rw\n"))
	for _, row := range []struct {
		why    string
		rights rights
		say    string
	}{
		{"all is there", rights{0, all, tree}, ""},
		{"another user", rights{1000, all, tree}, "sudo"},
		{"a container without rights", rights{0, all &^ (1 << capSysAdmin), tree}, "lacks it: in a container, start that with `docker run --privileged`"},
		{"a chroot without /proc", rights{0, 0, nil}, "mount -t proc proc /proc"},
		{"no cgroups", rights{0, all, readOnly[1:]}, "none are mounted"},
		{"cgroups of a container without rights", rights{0, all, readOnly}, "/sys/fs/cgroup is mounted read-only"},
	} {
		err := row.rights.check()
		if (err != nil) != (row.say != "") || err != nil && !strings.Contains(err.Error(), row.say) {
			t.Errorf("%s: %v", row.why, err)
		}
	}
}

func TestMountPointsWithBlanks(t *testing.T) {
	all := parseMounts(strings.NewReader(`40 25 0:30 / /a\040b\134c rw - tmpfs tmpfs rw` + "\n41 25 0:31 /of\u3000a /on\u00a0b rw - ext4 /dev/sda1 rw\n"))
	if len(all) != 2 || all[0].point != `/a b\c` || all[1].point != "/on\u00a0b" {
		t.Errorf("%+v", all)
	}
}

func TestWhichRuntimeIsChosen(t *testing.T) {
	ready := Seen{Path: "/c", Name: "containerd 2"}
	noNet := Seen{Path: "/c", Name: "containerd 2", NoNetwork: "cni plugin not initialized"}
	absent := Seen{Path: "/x", Problem: "there is no /x"}
	crio := Seen{Path: "/o", Name: "cri-o 1"}
	for _, row := range []struct {
		what    string
		seen    []Seen
		network bool
		want    string
		why     string
	}{
		{"the first that is ready", []Seen{ready, crio}, true, "unix:///c", "containerd 2 is ready at /c"},
		{"one whose pods need no network", []Seen{noNet}, false, "unix:///c", "is ready"},
		{"the other one, as the first has no network", []Seen{noNet, crio}, true, "unix:///o", "cri-o 1 is ready at /o"},
		{"none has a network", []Seen{noNet, absent}, true, "", "containerd 2 at /c has no network for pods (cni plugin not initialized), there is no /x"},
		{"none is there", []Seen{absent}, false, "", "there is no /x"},
	} {
		if got, why := Choose(row.seen, row.network); got != row.want || !strings.Contains(why, row.why) {
			t.Errorf("%s: %q, %s", row.what, got, why)
		}
	}
}

func TestARuntimeThatSaysItIsNotReady(t *testing.T) {
	s := Seen{Path: "/c"}
	s.note(&rt.RuntimeStatus{Conditions: []*rt.RuntimeCondition{{Type: rt.RuntimeReady, Reason: "Why"}, {Type: rt.NetworkReady, Message: "no net\n"}}})
	if s.Problem != "the runtime at /c is not ready: Why" || s.NoNetwork != "no net" {
		t.Errorf("%+v", s)
	}
}

func TestSocketsHaveShortPaths(t *testing.T) {
	const tail = "/containerd/sock"
	for n, fits := range map[int]bool{longestSocket - len(".ttrpc"): true, longestSocket - len(".ttrpc") + 1: false} {
		err := checkSocket("/" + strings.Repeat("x", n-len(tail)-1) + tail)
		if (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "TMPDIR") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestStartTimesOfProcesses(t *testing.T) {
	got, err := startTime("7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 100 2")
	if err != nil || got != 4711 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := startTime("7 (x) S 1"); err == nil {
		t.Error("a short file has a start time")
	}
}

func TestAProcessWithAPidOfAFormerOneIsNotTheSame(t *testing.T) {
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p, err := self.open()
	if err != nil || p.ended() {
		t.Fatalf("this process: %v", err)
	}
	p.fd.Close()
	for what, other := range map[string]identity{
		"another start": {PID: self.PID, Started: self.Started - 1, Boot: self.Boot},
		"another boot":  {PID: self.PID, Started: self.Started, Boot: "x"},
	} {
		if _, err := other.open(); err == nil {
			t.Errorf("%s: taken for the same process", what)
		}
	}
}

func TestShimsAreThoseOfTheSocket(t *testing.T) {
	peerOf := func(pid, parent int, args string) peer {
		p, err := parsePeer(pid, "1 (x) S "+strings.Repeat("1 ", 20), []byte(strings.ReplaceAll(args, " ", "\x00")+"\x00"))
		if err != nil {
			t.Fatal(err)
		}
		p.parent = parent
		return p
	}
	all := peers{
		peerOf(10, 1, "/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -id a -address /d/sock"),
		peerOf(11, 1, "/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -id b -address /other/sock"),
		peerOf(12, 10, "/pause"), peerOf(13, 12, "sh"), peerOf(14, 1, "cat -address /d/sock"),
		peerOf(15, 1, "/usr/bin/containerd-shim-runc-v2 -address"),
	}
	if got := all.shimsOf("/d/sock"); len(got) != 1 || got[0].pid != 10 {
		t.Errorf("shims %v", got)
	}
	if got := all.below(10); len(got) != 2 || got[0].pid != 12 || got[1].pid != 13 {
		t.Errorf("below the shim %v", got)
	}
}

func TestTheNetworkFollowsFromWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	n := network{dir: dir, confDir: filepath.Join(dir, "net.d"), plugins: dir, filters: true}
	var list struct {
		Name    string
		Plugins []map[string]any
	}
	kinds := func() (all []string) {
		list.Plugins = nil
		if err := json.Unmarshal(n.conflist(netip.MustParsePrefix("10.1.2.0/24")), &list); err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Plugins {
			all = append(all, p["type"].(string))
		}
		return all
	}
	if got := strings.Join(kinds(), " "); got != "bridge portmap" || list.Plugins[0]["ipMasq"] != true || len(list.Name) > 15 || list.Plugins[0]["bridge"] != list.Name {
		t.Errorf("%s: %+v", got, list)
	}
	if err := os.WriteFile(filepath.Join(dir, "firewall"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(kinds(), " "); got != "bridge portmap firewall" {
		t.Errorf("with the plugin firewall: %s", got)
	}
	n.filters = false
	if got := strings.Join(kinds(), " "); got != "bridge" || list.Plugins[0]["ipMasq"] != false {
		t.Errorf("without iptables: %s, %+v", got, list)
	}
}

func TestANetworkThatIsThereStays(t *testing.T) {
	dir := t.TempDir()
	n := network{dir: dir, confDir: filepath.Join(dir, "net.d"), plugins: dir}
	if err := n.write(); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(n.file())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.write(); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(n.file()); string(second) != string(first) {
		t.Errorf("pods have addresses in a subnet that is given up:\n%s%s", first, second)
	}
	if !hasConf(n.confDir) || hasConf(dir) {
		t.Error("a CNI configuration is not told from other files")
	}
}

// The CNI library takes a folder for no configuration, whatever its name: pods would have no network.
func TestAFolderIsNoCNIConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "old.conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	if hasConf(dir) {
		t.Error("a folder is taken for the machine's configuration of CNI")
	}
}

func TestFoldersOfPlugins(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(one, "bridge"), filepath.Join(two, "bridge"), filepath.Join(two, "loopback")} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := folderWith([]string{"/none", one, two}, "bridge", "loopback"); got != two {
		t.Errorf("%q", got)
	}
	if got := folderWith([]string{one}, "bridge", "loopback"); got != "" {
		t.Errorf("%q lacks a plugin", got)
	}
}

func TestTheLastWordsAreNoWarning(t *testing.T) {
	for log, want := range map[string]string{
		"level=error msg=one\nlevel=fatal msg=two\nlevel=warning msg=three\n": "level=fatal msg=two",
		"panic: x\nlevel=info": "panic: x",
		"level=warning msg=x":  "",
		"":                     "",
	} {
		if got := lastGrave(log); got != want {
			t.Errorf("%q: %q", log, got)
		}
	}
}

func TestWhatSystemdSaidIsNotForContainerd(t *testing.T) {
	got := withoutSystemd([]string{"A=1", "NOTIFY_SOCKET=/n", "WATCHDOG_USEC=1", "INVOCATION_ID=x", "PATH=/bin", "HTTPS_PROXY=p"})
	if strings.Join(got, " ") != "A=1 HTTPS_PROXY=p" {
		t.Errorf("%v", got)
	}
}

func TestAnInterfaceThatIsNotThereIsRemoved(t *testing.T) {
	if err := removeLink("monopodnosuch"); err != nil {
		t.Error(err)
	}
}

// An agent that was killed while it tried an overlay leaves a mount and its folders.
func TestATriedOverlayIsRemovedByTheNextAgent(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, "overlay-trial", name) }
	left := at("merged")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", left, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(left, unix.MNT_DETACH) })
	kind := snapshotter(dir, "")
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("%v is left (%v)", all, err)
	}
	if slices.ContainsFunc(mounts(), func(m mount) bool { return strings.HasPrefix(m.point, dir) }) {
		t.Error("it is still mounted")
	}
	if want := snapshotter(t.TempDir(), ""); kind != want {
		t.Errorf("%s is chosen, where nothing is left %s", kind, want)
	}
}
