package rig

import (
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

	"monopod/agent/managed"
)

// subnetBits leaves addresses for a thousand pods.
const subnetBits = 22

// Network is a pod network of its own: a bridge and a subnet that nothing else
// on the machine uses.
type Network struct {
	Name   string // of the CNI network and of the bridge
	Subnet netip.Prefix
	Ports  bool   // host ports work here: there is an iptables with a nat table
	BinDir string // CNI plugins
	dir    string // conf/ and the address book are in here
	chains bool   // the nat table had the portmap plugin's chains before us
}

// newNetwork makes the bridge and writes the network's CNI configuration under dir.
// The bridge is ours and not left to the plugin, which would switch on ip_forward
// for the whole machine. Its hardware address is given: else it is the lowest one of the
// interfaces on it, and CRI-O refuses a sandbox during whose making it changed.
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
	used, err := managed.UsedPrefixes()
	if err != nil {
		return nil, err
	}
	if n.Subnet, err = managed.FreeSubnet(used, subnetBits, rand.IntN); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(n.ConfDir(), 0o755); err != nil {
		return nil, fmt.Errorf("pod network: %w", err)
	}
	n.chains = hasChains()
	return n, errors.Join(os.WriteFile(n.marker(), fmt.Append(nil, n.chains), 0o644),
		os.WriteFile(filepath.Join(n.ConfDir(), n.Name+".conflist"), n.conflist(), 0o644), n.addBridge())
}

func (n *Network) marker() string { return filepath.Join(n.dir, "chains") }

func (n *Network) addBridge() error {
	for _, args := range []string{"link add NAME address 02:00:00:00:00:01 type bridge", "addr add GATEWAY/BITS dev NAME", "link set NAME up"} {
		args = strings.NewReplacer("NAME", n.Name, "GATEWAY", n.Gateway(), "BITS", strconv.Itoa(subnetBits)).Replace(args)
		if _, err := output(exec.Command("ip", strings.Fields(args)...)); err != nil {
			return fmt.Errorf("pod network: %w", err)
		}
	}
	return nil
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
	b, _ := os.ReadFile(n.marker())
	n.chains = string(b) != "false"
	return n
}

// ConfDir is the folder that the runtime reads the network from.
func (n *Network) ConfDir() string { return filepath.Join(n.dir, "conf") }

// Gateway is the host's address in the network.
func (n *Network) Gateway() string { return n.Subnet.Addr().Next().String() }

func (n *Network) conflist() []byte {
	type object = map[string]any
	plugins := []object{{
		"type": "bridge", "bridge": n.Name, "hairpinMode": true,
		"ipam": object{
			"type": "host-local", "dataDir": filepath.Join(n.dir, "addresses"),
			"ranges": [][]object{{{"subnet": n.Subnet.String(), "gateway": n.Gateway()}}},
			"routes": []object{{"dst": "0.0.0.0/0"}},
		},
	}}
	if n.Ports {
		plugins = append(plugins, object{"type": "portmap", "capabilities": object{"portMappings": true}})
	}
	b, _ := json.MarshalIndent(object{"cniVersion": "0.4.0", "name": n.Name, "plugins": plugins}, "", "  ")
	return b
}

// close deletes the bridge and what the plugins left.
func (n *Network) close() {
	if n == nil {
		return
	}
	_ = exec.Command("ip", "link", "del", n.Name).Run()
	if !n.chains {
		removeChains()
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
	if rules, _ := output(exec.Command("iptables", "-t", "nat", "-S")); strings.Contains(rules, n.Name) {
		leaks = append(leaks, "nat rules of network "+n.Name)
	}
	_ = filepath.WalkDir(filepath.Join(n.dir, "addresses"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && net.ParseIP(d.Name()) != nil {
			leaks = append(leaks, "pod address "+path)
		}
		return nil
	})
	return leaks
}
