package managed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"monopod/agent/disk"
)

// machineConf is where a machine has its CNI configuration.
const machineConf = "/etc/cni/net.d"

// pluginDirs are where CNI plugins are: those of most distributions and of Kubernetes, Debian's, and
// Fedora's and its like.
var pluginDirs = []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"}

// addresses is the folder of the addresses that pods have.
const addresses = "addresses"

// subnetBits leaves addresses for 253 pods.
const subnetBits = 24

// network is how pods get networks of their own.
type network struct {
	dir     string // the runtime's
	confDir string
	binDirs []string
	plugins string // the folder of the plugins of a network of our own; "": there is none
	filters bool   // there is an iptables, for host ports and addresses of the machine's
	lacks   string // why there is no network, and what to do
	warning string
	servers string // the file with the machine's name servers for pods; "": there is none
}

// findNetwork returns the machine's network if it has one, else one of our own if there are
// plugins. The unit of the agent (isService) may not ask iptables, which containerd may.
func findNetwork(dir string, isService bool) network {
	n := network{dir: dir, confDir: machineConf}
	n.binDirs = slices.DeleteFunc(slices.Clone(pluginDirs), func(d string) bool { return !isFile(filepath.Join(d, "loopback")) })
	if len(n.binDirs) == 0 {
		n.binDirs = []string{"/usr/lib/cni"} // where apt-get puts them
	}
	if hasConf(machineConf) {
		return n
	}
	n.confDir = filepath.Join(dir, "net.d")
	n.plugins = folderWith(pluginDirs, "loopback", "bridge", "host-local", "portmap")
	if n.plugins == "" {
		n.lacks = "there are no CNI plugins in /opt/cni/bin or /usr/lib/cni: apt-get install containernetworking-plugins, and start monopod again"
		return n
	}
	n.binDirs = []string{n.plugins}
	n.filters = hasFilters(isService)
	if !n.filters {
		n.warning = "no iptables works here, so pods reach this machine alone and have no host ports: apt-get install iptables"
	}
	return n
}

// hasFilters reports whether an iptables works, or at least is there.
func hasFilters(isService bool) bool {
	if isService {
		_, err := exec.LookPath("iptables")
		return err == nil
	}
	_, err := output(context.Background(), "iptables", "-w", "-t", "nat", "-S", "POSTROUTING") // waits for others, as Docker's at a boot
	return err == nil
}

// hasConf reports whether a folder has a CNI configuration, in the words of the CNI library: a folder is none.
func hasConf(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !e.IsDir() && slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name()))
	})
}

// folderWith returns the first folder that has all of these files; "": none has.
func folderWith(dirs []string, names ...string) string {
	for _, d := range dirs {
		if !slices.ContainsFunc(names, func(name string) bool { return !isFile(filepath.Join(d, name)) }) {
			return d
		}
	}
	return ""
}

func isFile(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode().IsRegular()
}

// bridge is the name of the bridge of the runtime in dir, and of its network.
func bridge(dir string) string { return "monopod" + tagOf(dir) }

func (n network) file() string { return filepath.Join(n.dir, "net.d", "10-monopod.conflist") }

// write writes the network of our own, unless there is none. Pods keep the subnet of one that is
// there.
func (n network) write() error {
	if n.plugins == "" {
		return nil
	}
	if err := os.MkdirAll(n.confDir, 0o755); err != nil {
		return err
	}
	former, err := os.ReadFile(n.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	subnet, known := subnetOf(former)
	if !known {
		if subnet, err = n.freeSubnet(); err != nil {
			return err
		}
	}
	text := n.conflist(subnet)
	if bytes.Equal(text, former) {
		return nil
	}
	return disk.WriteFile(n.file(), text, 0o644)
}

func (n network) freeSubnet() (netip.Prefix, error) {
	used, err := UsedPrefixes(n.servers)
	if err != nil {
		return netip.Prefix{}, err
	}
	return FreeSubnet(used, subnetBits, rand.IntN)
}

// subnetOf returns the subnet of a conflist.
func subnetOf(text []byte) (subnet netip.Prefix, known bool) {
	var of struct {
		Plugins []struct {
			IPAM struct {
				Ranges [][]struct{ Subnet netip.Prefix }
			}
		}
	}
	if json.Unmarshal(text, &of) != nil || len(of.Plugins) == 0 || len(of.Plugins[0].IPAM.Ranges) == 0 || len(of.Plugins[0].IPAM.Ranges[0]) == 0 {
		return netip.Prefix{}, false
	}
	subnet = of.Plugins[0].IPAM.Ranges[0][0].Subnet
	return subnet, subnet.IsValid()
}

// conflist is a bridge with that subnet, which lets pods out as this machine, and lets in what
// goes to their host ports. Docker refuses what others forward: the plugin firewall has it let
// through.
func (n network) conflist(subnet netip.Prefix) []byte {
	type object = map[string]any
	plugins := []object{{
		"type": "bridge", "bridge": bridge(n.dir), "isGateway": true, "ipMasq": n.filters, "hairpinMode": true,
		"ipam": object{
			"type": "host-local", "dataDir": filepath.Join(n.dir, addresses),
			"ranges": [][]object{{{"subnet": subnet.String()}}},
			"routes": []object{{"dst": "0.0.0.0/0"}},
		},
	}}
	if n.filters {
		plugins = append(plugins, object{"type": "portmap", "capabilities": object{"portMappings": true}})
	}
	if n.filters && isFile(filepath.Join(n.plugins, "firewall")) {
		plugins = append(plugins, object{"type": "firewall", "backend": "iptables"})
	}
	// 0.4.0 is what all plugins of the last years speak.
	b, _ := json.MarshalIndent(object{"cniVersion": "0.4.0", "name": bridge(n.dir), "plugins": plugins}, "", "  ")
	return append(b, '\n')
}
