package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"monopod/cri"
)

// remedies are how to repair a runtime, for the runtime that is there.
type remedies struct {
	unit                 string // of systemd, without .service
	speak, load, systemd string
}

// remediesOf are those of the known runtimes, by their names of themselves.
var remediesOf = map[string]remedies{
	"containerd": {
		unit:    "containerd",
		speak:   `take "cri" out of disabled_plugins in /etc/containerd/config.toml if it is there, and restart containerd`,
		load:    "ctr --namespace k8s.io images import FILE",
		systemd: "set SystemdCgroup = true in /etc/containerd/config.toml",
	},
	cri.CRIO: {
		unit:    "crio",
		speak:   "upgrade CRI-O to 1.21 or newer",
		load:    "podman load --input FILE",
		systemd: `set cgroup_manager = "systemd" below [crio.runtime] in a file in /etc/crio/crio.conf.d`,
	},
}

// remedy returns the repair of the runtime: one, or if it is not known which runtime it is, each
// with its name.
func (m *Machine) remedy(of func(remedies) string) string {
	if r, known := remediesOf[m.runtimeName()]; known {
		return of(r)
	}
	return "containerd: " + of(remediesOf["containerd"]) + "; CRI-O: " + of(remediesOf[cri.CRIO])
}

// runtimeName returns the runtime's name of itself, or while it does not answer the name of the
// only existing socket; "" if neither is known.
func (m *Machine) runtimeName() string {
	if m.silent == nil {
		return m.version.RuntimeName
	}
	sockets := slices.DeleteFunc(slices.Clone(m.Endpoints), func(e string) bool { return !isThere(e) })
	if len(sockets) != 1 {
		return ""
	}
	return nameOf(sockets[0])
}

// nameOf returns the name of itself of the runtime whose usual socket has that name; "": of none.
func nameOf(endpoint string) string {
	switch strings.TrimSuffix(filepath.Base(endpoint), ".sock") {
	case "containerd":
		return "containerd"
	case "crio":
		return cri.CRIO
	}
	return ""
}

// start returns how to get a runtime where none has a socket: one that ends in order removes its own.
func (m *Machine) start() string {
	var all []string
	for _, endpoint := range m.Endpoints {
		r := remediesOf[nameOf(endpoint)]
		if r.unit != "" && (m.hasUnit(r.unit+".service") || m.hasFile("etc/init.d/"+r.unit)) {
			all = append(all, m.service("start", r.unit))
		}
	}
	if len(all) == 0 {
		return "install containerd or CRI-O, or name its socket with --runtime-endpoint"
	}
	return strings.Join(all, "; or ")
}

// service returns how to start or restart a service, and where it says what is wrong. Not every
// machine has systemd.
func (m *Machine) service(verb, unit string) string {
	if m.hasSystemd() && m.hasUnit(unit+".service") {
		return "systemctl " + verb + " " + unit + ", and look at journalctl --unit " + unit
	}
	return verb + " " + unit + ", and look at its log"
}

// hasSystemd reports whether systemd runs the machine, as sd_booted(3).
func (m *Machine) hasSystemd() bool { return m.hasFile("run/systemd/system") }

// hasUnit reports whether systemd has a unit, in one of the folders of systemd.unit(5).
func (m *Machine) hasUnit(name string) bool {
	return slices.ContainsFunc([]string{"etc", "run", "usr/local/lib", "usr/lib", "lib"}, func(in string) bool {
		return m.hasFile(in + "/systemd/system/" + name)
	})
}

// hasFile reports whether the machine has a file, whose path is relative to the root folder.
func (m *Machine) hasFile(name string) bool {
	_, err := os.Stat(m.file(name))
	return err == nil
}

// isThere reports whether the file of an endpoint exists.
func isThere(endpoint string) bool {
	_, err := os.Stat(strings.TrimPrefix(endpoint, "unix://"))
	return err == nil
}
