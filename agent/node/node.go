// Package node reads what the machine is and has, and reports it as the Node.
package node

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	kernel "github.com/containerd/cgroups/v3"

	"monopod/agent/checkpoint"
	"monopod/agent/podspec"
	"monopod/agent/saidonce"
	"monopod/agent/stats"
	"monopod/cgroups"
	"monopod/manifests"
)

// nodeFor is how long values read from the machine are kept: addresses, resolv.conf
// and hosts change while the agent runs, often right after boot.
const nodeFor = 10 * time.Second

// Node reads what pods need to know of the machine. Any goroutine may use it.
type Node struct {
	Cfg  NodeSettings // as at start
	log  *slog.Logger
	Base podspec.Host // what does not change
	Boot checkpoint.Boot

	Facts     Facts                 // as at start
	ReadFacts func() (Facts, error) // as now

	mu   sync.Mutex
	Read time.Time
	now  *podspec.Host
	said saidonce.Error
}

// New reads what does not change while the agent runs. live returns the present
// settings.
func New(cfg NodeSettings, live func() NodeSettings, instance string, log *slog.Logger) (*Node, error) {
	return newOn(theMachine(), cfg, live, instance, log)
}

func newOn(security securityFiles, cfg NodeSettings, live func() NodeSettings, instance string, log *slog.Logger,
) (*Node, error) {
	facts, err := ReadFacts(cfg)
	if err != nil {
		return nil, err
	}
	if err := cfg.Reserved.Check(facts.Capacity); err != nil {
		return nil, err
	}
	unified := kernel.Mode() == kernel.Unified // hybrid is v1: there the controllers are
	read := func() (Facts, error) { return ReadFacts(live()) }
	return &Node{Cfg: cfg, Boot: checkpoint.ReadBoot(), log: log, Facts: facts, ReadFacts: read, Base: podspec.Host{
		Name: cfg.NodeName, Instance: instance, Root: cfg.Root, PodLogs: cfg.PodLogs,
		Memory: facts.Capacity.Memory().Value(), Allocatable: facts.Allocatable, CgroupV2: unified, SwapController: SwapController("/sys/fs/cgroup", unified), HugePageSizes: hugePageNames(),
		ClusterDNS: cfg.ClusterDNS, ClusterDomain: cfg.ClusterDomain, PodPids: cfg.PodPids, SeccompDefault: cfg.SeccompDefault,
		SELinux: security.selinux(), MaskedPaths: security.masked(),
		NoCFSQuota: cfg.NoCFSQuota, CFSPeriod: cfg.CFSPeriod.Microseconds(), ExclusiveCPUs: cfg.ExclusiveCPUs, SingleProcessOOMKill: cfg.SingleProcessOOMKill,
	}}, nil
}

// Now returns the state of the machine, at most nodeFor old. The result must not be changed.
func (m *Node) Now() *podspec.Host {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != nil && time.Since(m.Read) < nodeFor {
		return m.now
	}
	n := m.Base
	n.HostIPs = m.Addresses()
	var problem error
	if m.Cfg.ResolvConf == "" {
		n.Resolv = podspec.LocalResolvConf(n.HostIPs)
	} else if conf, err := manifests.ReadFile(m.Cfg.ResolvConf); err != nil {
		problem = err
	} else if n.Resolv, err = podspec.ParseResolvConf(conf); err != nil {
		problem = fmt.Errorf("%s: %w", m.Cfg.ResolvConf, err)
	}
	if m.said.IsNew(problem) {
		m.log.Warn("pods get no name servers from the machine", "err", problem)
	}
	n.HostsFile, _ = manifests.ReadFile("/etc/hosts") // a machine may have none
	m.now, m.Read = &n, time.Now()
	return m.now
}

// Addresses returns the machine's addresses at this moment, primary first: those of the settings, else
// what it has by itself.
func (m *Node) Addresses() []string {
	if len(m.Cfg.IPs) > 0 {
		return m.Cfg.IPs
	}
	return hostIPs()
}

// setCgroups sets the names of the cgroups of pods.
func (m *Node) setCgroups(n cgroups.Names) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Base.Cgroups, m.now = n, nil
}

// hostIPs returns one address of the machine, as a kubelet without --node-ip does:
// that of the default route, IPv4 before IPv6, else the first global one, else the
// loopback address.
func hostIPs() []string {
	for _, a := range []struct{ network, far string }{{"udp4", "192.0.2.1:9"}, {"udp6", "[2001:db8::1]:9"}} {
		c, err := net.Dial(a.network, a.far) // sends nothing: it only looks up the route
		if err != nil {
			continue
		}
		ip := c.LocalAddr().(*net.UDPAddr).IP
		c.Close()
		if ip.IsGlobalUnicast() {
			return []string{ip.String()}
		}
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return []string{n.IP.String()}
		}
	}
	return []string{"127.0.0.1"}
}

// memoryTotal returns the machine's memory in bytes.
func memoryTotal(path string) (int64, error) {
	text, err := stats.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("memory of the machine: %w", err)
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("memory of the machine: %s has no MemTotal", path)
}

// HasSwap reports whether the machine has swap, by /proc/swaps. The file's first line is a heading.
func HasSwap(swaps string) (bool, error) {
	b, err := os.ReadFile(swaps)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without swap has no such file
		return false, fmt.Errorf("look for swap: %w", err)
	}
	return bytes.Count(bytes.TrimSpace(b), []byte("\n")) > 0, nil
}

// SwapController reports whether cgroups can limit swap here: on v2 by the
// agent's own cgroup, as the root has no limits, on v1 by the root.
func SwapController(mount string, unified bool) bool {
	if !unified {
		_, err := os.Stat(filepath.Join(mount, "memory", "memory.memsw.limit_in_bytes"))
		return err == nil
	}
	_, path, err := kernel.ParseCgroupFileUnified("/proc/self/cgroup")
	if err == nil {
		_, err = os.Stat(filepath.Join(mount, path, "memory.swap.max"))
	}
	return err == nil
}

// hugePagesDir has a folder for each size of huge pages.
const hugePagesDir = "/sys/kernel/mm/hugepages"

// hugePageNames returns the page sizes of the machine as cgroups name them,
// such as 2MB and 1GB.
func hugePageNames() []string {
	var out []string
	for _, kib := range slices.Sorted(maps.Keys(hugePageSizes(hugePagesDir))) {
		out = append(out, podspec.PageSize(kib<<10))
	}
	return out
}
