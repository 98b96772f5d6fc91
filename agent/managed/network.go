package managed

import (
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

// pluginDirs are where CNI plugins are: those of most distributions and of Kubernetes, and Debian's.
var pluginDirs = []string{"/opt/cni/bin", "/usr/lib/cni"}

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
}

// findNetwork returns the machine's network if it has one, else one of our own if there are
// plugins.
func findNetwork(dir string) network {
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
	n.filters = exec.Command("iptables", "-t", "nat", "-S", "POSTROUTING").Run() == nil
	if !n.filters {
		n.warning = "no iptables works here, so pods reach this machine alone and have no host ports: apt-get install iptables"
	}
	return n
}

// hasConf reports whether a folder has a CNI configuration, in the words of the CNI library.
func hasConf(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name()))
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

// write writes the network of our own, unless there is none or it is there: its pods have it.
func (n network) write() error {
	if n.plugins == "" {
		return nil
	}
	if err := os.MkdirAll(n.confDir, 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(n.file()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	used, err := UsedPrefixes()
	if err != nil {
		return err
	}
	subnet, err := FreeSubnet(used, subnetBits, rand.IntN)
	if err != nil {
		return err
	}
	return disk.WriteFile(n.file(), n.conflist(subnet), 0o644)
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
