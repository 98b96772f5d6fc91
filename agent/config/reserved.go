package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// What follows are the checks of the cgroups whose processes are held to what is reserved for them.
// Their errors quote no name. The driver is not known yet: it is the runtime's. So a name is read as
// a path, and as a slice, too, if it is that of one: systemd knows a slice by its last part, in
// which those above it stand before dashes.

// checkReserved returns the setting that names a cgroup that cannot be held to an amount, and why.
func (c *Config) checkReserved() (setting string, err error) {
	var former []string
	for _, r := range []struct{ setting, level, cgroup string }{
		{"systemReservedCgroup", EnforceSystem, c.SystemReservedCgroup},
		{"kubeReservedCgroup", EnforceAgent, c.KubeReservedCgroup},
	} {
		if r.cgroup == "" || !slices.Contains(c.Enforce, r.level) && !slices.Contains(c.Enforce, r.level+Compressible) {
			continue
		}
		if err := c.checkOutside(r.cgroup); err != nil {
			return r.setting, err
		}
		if slices.ContainsFunc(former, func(other string) bool { return isSameCgroup(other, r.cgroup) }) {
			return r.setting, errors.New("names the cgroup of systemReservedCgroup, which cannot have two limits: choose another, or enforce one of them")
		}
		former = append(former, r.cgroup)
	}
	return "", nil
}

// checkOutside returns an error if a cgroup is the root, or that of all pods, in it or above it.
func (c *Config) checkOutside(name string) error {
	pods := filepath.Join("/", c.CgroupRoot, "kubepods")
	own := cleanCgroup(name)
	switch {
	case own == "/":
		return errors.New("names the root, which has no limits and holds the pods in cgroupRoot: choose a cgroup without pods")
	case own == pods || isSlice(own) && unitOf(own) == slice(pods):
		return errors.New("names the cgroup of all pods, kubepods in cgroupRoot, whose limits are its own: choose a cgroup without pods")
	case isIn(own, pods) || isSlice(own) && strings.HasPrefix(unitOf(own), slice(pods)+"-"):
		return errors.New("names a cgroup in that of all pods, kubepods in cgroupRoot: choose a cgroup without pods")
	case isIn(pods, own) || isSlice(own) && strings.HasPrefix(slice(pods), unitOf(own)+"-"):
		return errors.New("names a cgroup that holds that of all pods, kubepods in cgroupRoot: choose a cgroup without pods")
	}
	return nil
}

func isSameCgroup(a, b string) bool {
	a, b = cleanCgroup(a), cleanCgroup(b)
	return a == b || isSlice(a) && isSlice(b) && unitOf(a) == unitOf(b)
}

func cleanCgroup(name string) string { return filepath.Join("/", name) }

// isIn reports whether the cgroup below is in the one above it.
func isIn(below, above string) bool { return strings.HasPrefix(below, above+"/") }

func isSlice(name string) bool { return strings.HasSuffix(name, ".slice") }

// unitOf returns the last part of the name of a slice, by which systemd knows it, without its
// ending.
func unitOf(name string) string { return strings.TrimSuffix(filepath.Base(name), ".slice") }

// slice returns what unitOf returns of the slice that package cgroups makes for a path.
func slice(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.Trim(name, "/"), "-", "_"), "/", "-")
}
