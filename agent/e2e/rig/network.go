package rig

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Network is a pod network of its own: a bridge and a subnet that nothing else
// on the machine uses.
type Network struct {
	Name   string // of the CNI network and of the bridge
	Subnet netip.Prefix
	Ports  bool   // host ports work here: there is an iptables with a nat table
	BinDir string // CNI plugins
	dir    string // conf/ and the address book are in here
	ip4    string // ip_forward before us; the bridge plugin switches it on
}

const forwarding = "/proc/sys/net/ipv4/ip_forward"

// newNetwork writes the network's CNI configuration under dir. The bridge comes
// with the first pod.
func newNetwork(dir string) (*Network, error) {
	n := &Network{Name: fmt.Sprintf("mp%06x", rand.Uint32N(1<<24)), dir: dir}
	n.Ports = exec.Command("iptables", "-t", "nat", "-S").Run() == nil
	for _, d := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		if _, err := os.Stat(filepath.Join(d, "bridge")); err == nil {
			n.BinDir = d
			break
		}
	}
	if n.BinDir == "" {
		return nil, errors.New("no CNI plugins in /usr/lib/cni or /opt/cni/bin: install containernetworking-plugins (make deps)")
	}
	var err error
	if n.Subnet, err = freeSubnet(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(n.ConfDir(), 0o755); err != nil {
		return nil, fmt.Errorf("pod network: %w", err)
	}
	b, _ := os.ReadFile(forwarding)
	n.ip4 = string(b)
	return n, errors.Join(os.WriteFile(filepath.Join(dir, "ip_forward"), b, 0o644),
		os.WriteFile(filepath.Join(n.ConfDir(), n.Name+".conflist"), n.conflist(), 0o644))
}

// loadNetwork returns enough of the network of the rig in dir to close it; nil if
// there is none.
func loadNetwork(rig string) *Network {
	n := &Network{dir: filepath.Join(rig, "cni")}
	confs := globs(n.ConfDir() + "/*.conflist")
	if len(confs) == 0 {
		return nil
	}
	n.Name = strings.TrimSuffix(filepath.Base(confs[0]), ".conflist")
	b, _ := os.ReadFile(filepath.Join(n.dir, "ip_forward"))
	n.ip4 = string(b)
	return n
}

// ConfDir is the folder that the runtime reads the network from.
func (n *Network) ConfDir() string { return filepath.Join(n.dir, "conf") }

// Gateway is the host's address in the network, there once a pod is.
func (n *Network) Gateway() string { return n.Subnet.Addr().Next().String() }

func (n *Network) conflist() []byte {
	type object = map[string]any
	plugins := []object{{
		"type": "bridge", "bridge": n.Name, "isGateway": true, "hairpinMode": true,
		"ipam": object{
			"type": "host-local", "dataDir": filepath.Join(n.dir, "addresses"),
			"ranges": [][]object{{{"subnet": n.Subnet.String()}}},
			"routes": []object{{"dst": "0.0.0.0/0"}},
		},
	}}
	if n.Ports {
		plugins = append(plugins, object{"type": "portmap", "capabilities": object{"portMappings": true}})
	}
	b, _ := json.MarshalIndent(object{"cniVersion": "0.4.0", "name": n.Name, "plugins": plugins}, "", "  ")
	return b
}

// close deletes the bridge and puts ip_forward back.
func (n *Network) close() {
	if n == nil {
		return
	}
	_ = exec.Command("ip", "link", "del", n.Name).Run()
	if n.ip4 != "" {
		_ = os.WriteFile(forwarding, []byte(n.ip4), 0o644)
	}
	for _, f := range n.cached() {
		_ = os.Remove(f)
	}
}

// cached are the results of our network that libcni keeps in a folder of its own choice.
func (n *Network) cached() []string {
	found, _ := filepath.Glob("/var/lib/cni/results/" + n.Name + "-*")
	return found
}

// leaks lists what pods left in the network: interfaces, addresses, results.
func (n *Network) leaks() []string {
	leaks := n.cached()
	ports, _ := filepath.Glob("/sys/class/net/" + n.Name + "/brif/*")
	for _, p := range ports {
		leaks = append(leaks, "interface "+filepath.Base(p)+" on bridge "+n.Name)
	}
	_ = filepath.WalkDir(filepath.Join(n.dir, "addresses"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && net.ParseIP(d.Name()) != nil {
			leaks = append(leaks, "pod address "+path)
		}
		return nil
	})
	return leaks
}

// freeSubnet picks a /24 under 10.0.0.0/8 that no interface and no route covers.
func freeSubnet() (netip.Prefix, error) {
	used, err := usedPrefixes()
	if err != nil {
		return netip.Prefix{}, err
	}
	start := rand.IntN(1 << 16)
	for i := range 1 << 16 {
		k := (start + i) % (1 << 16)
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(k >> 8), byte(k), 0}), 24)
		free := true
		for _, u := range used {
			free = free && !u.Overlaps(p)
		}
		if free {
			return p, nil
		}
	}
	return netip.Prefix{}, errors.New("no free /24 under 10.0.0.0/8")
}

// usedPrefixes returns the destinations of the main IPv4 routing table except the
// default route; those of the interfaces are among them.
func usedPrefixes() ([]netip.Prefix, error) {
	f, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	defer f.Close()
	var used []netip.Prefix
	for s := bufio.NewScanner(f); s.Scan(); {
		col := strings.Fields(s.Text()) // Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		if len(col) < 8 {
			continue
		}
		dst, err1 := strconv.ParseUint(col[1], 16, 32)
		mask, err2 := strconv.ParseUint(col[7], 16, 32)
		if err1 != nil || err2 != nil || mask == 0 {
			continue
		}
		var a, m [4]byte
		binary.LittleEndian.PutUint32(a[:], uint32(dst))
		binary.LittleEndian.PutUint32(m[:], uint32(mask))
		ones, _ := net.IPMask(m[:]).Size()
		used = append(used, netip.PrefixFrom(netip.AddrFrom4(a), ones))
	}
	return used, nil
}
