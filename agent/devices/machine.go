package devices

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Device is a device that is there.
type Device struct {
	ID   string // the path at which it was found, or its CDI name
	Path string // without links; "": it is a CDI device
}

// key is the same for all names of a device.
func (d Device) key() string {
	if d.Path != "" {
		return d.Path
	}
	return d.ID
}

// Machine is which devices are there.
type Machine struct {
	of     map[string][]Device // by resource, each device once
	no     map[string][]string // by resource, why paths that match are no devices
	keys   map[string]string   // of devices, by ID
	places map[string]int      // how many containers may have a device at a time, by its key; not in it: any number
}

// Look looks at which devices of the resources are there.
func Look(s Settings) *Machine {
	m := &Machine{of: map[string][]Device{}, no: map[string][]string{}, keys: map[string]string{}, places: map[string]int{}}
	var known map[string]bool
	for _, name := range slices.Sorted(maps.Keys(s.Resources)) {
		r := s.Resources[name]
		if len(r.CDI) > 0 && known == nil {
			known = CDINames(s.SpecDirs)
		}
		m.add(name, r, known)
	}
	return m
}

// add adds the devices of a resource. known are the names of CDI devices.
func (m *Machine) add(name string, r Resource, known map[string]bool) {
	for _, pattern := range r.Paths {
		all, _ := filepath.Glob(pattern) // the settings were checked
		for _, path := range all {
			real, err := Resolve(path)
			if err != nil {
				m.no[name] = append(m.no[name], err.Error())
				continue
			}
			m.addOne(name, r, Device{ID: path, Path: real})
		}
	}
	for _, id := range r.CDI {
		if known[id] {
			m.addOne(name, r, Device{ID: id})
		}
	}
}

// addOne adds a device, unless the resource has it by another path.
func (m *Machine) addOne(name string, r Resource, d Device) {
	m.keys[d.ID] = d.key() // a container of a former agent may have it by that path
	if slices.ContainsFunc(m.of[name], func(o Device) bool { return o.key() == d.key() }) {
		return
	}
	m.of[name] = append(m.of[name], d)
	if has, bounded := m.places[d.key()]; r.Count > 0 && (!bounded || r.Count < has) {
		m.places[d.key()] = r.Count
	}
}

// Resolve returns the path of a device without links. Its error is a sentence: it is not there, or
// it is no device.
func Resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("the device %s is not there: connect it, or correct its path", path)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("the device %s is not there: connect it, or correct its path", path)
	}
	if info.Mode()&fs.ModeDevice == 0 {
		return "", fmt.Errorf("%s is no device: %s", path, remedyOf(info.Mode()))
	}
	return real, nil
}

func remedyOf(mode fs.FileMode) string {
	if mode.IsDir() {
		return "it is a folder: name the devices in it"
	}
	return "correct its path, or mount it as a hostPath volume"
}

// SpecDirs are the folders of CDI specifications, as in the CDI specification. The later one wins.
var SpecDirs = []string{"/etc/cdi", "/var/run/cdi"}

// maxSpec is larger than any CDI specification, in bytes.
const maxSpec = 4 << 20

// CDINames returns the full names of the devices in the CDI specifications of these folders. What
// cannot be read has none: the runtime, which alone applies specifications, says why.
func CDINames(dirs []string) map[string]bool {
	names := map[string]bool{}
	for _, dir := range dirs {
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			if ext := filepath.Ext(f.Name()); ext == ".json" || ext == ".yaml" {
				addSpec(names, filepath.Join(dir, f.Name()))
			}
		}
	}
	return names
}

func addSpec(names map[string]bool, path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSpec {
		return
	}
	text, err := os.ReadFile(path)
	var spec struct {
		Kind    string                  `json:"kind"`
		Devices []struct{ Name string } `json:"devices"`
	}
	if err != nil || yaml.Unmarshal(text, &spec) != nil {
		return
	}
	for _, d := range spec.Devices {
		names[spec.Kind+"="+d.Name] = true
	}
}

// lacks is a sentence about why nothing of a resource is there.
func (m *Machine) lacks(name string, r Resource, dirs []string) string {
	if len(m.no[name]) > 0 {
		return m.no[name][0]
	}
	var parts []string
	if len(r.Paths) > 0 {
		parts = append(parts, fmt.Sprintf("nothing is at %s: connect the device", strings.Join(r.Paths, " or ")))
	}
	if len(r.CDI) > 0 {
		parts = append(parts, noSpec(strings.Join(r.CDI, " or "), dirs))
	}
	return strings.Join(parts, "; ") + ", or correct devices in the settings"
}

// noSpec says that no CDI specification has a device.
func noSpec(name string, dirs []string) string {
	return fmt.Sprintf("no CDI specification in %s has %s: add it with the tool of the device's maker", strings.Join(dirs, " or "), name)
}
