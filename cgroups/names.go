package cgroups

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"monopod/manifests/poduid"
)

// Driver is how cgroups are created; their names depend on it.
type Driver string

const (
	None     Driver = ""         // pods have no cgroups of their own
	Cgroupfs Driver = "cgroupfs" // folders in the hierarchies
	Systemd  Driver = "systemd"  // slices of systemd
)

// Class is the level that holds a pod's cgroup.
type Class string

const (
	Guaranteed Class = "" // right under kubepods
	Burstable  Class = "burstable"
	BestEffort Class = "besteffort"
)

var classes = []Class{Guaranteed, Burstable, BestEffort}

// Names computes the names of cgroups. They are the kubelet's, so that tools that know its tree
// work here, too. The zero value has no cgroups.
type Names struct {
	Driver Driver
	Root   string // the cgroup that holds kubepods, such as /a/b; "" or "/": the root
}

// Pod returns the path of a pod's cgroup in its hierarchies, which is also the
// cgroup_parent for the runtime; "" with driver None.
func (n Names) Pod(c Class, uid string) string { return n.path(c, "pod"+uid) }

// Pods returns the path of the cgroup that holds those of all pods; "" with driver None.
func (n Names) Pods() string { return n.level(Guaranteed) }

// level returns the path of a class's level; for Guaranteed it is kubepods.
func (n Names) level(c Class) string { return n.path(c, "") }

// path returns the path of a pod's cgroup, or without a pod that of its class's level.
func (n Names) path(c Class, pod string) string {
	return n.in(path.Join("/", n.Root, "kubepods", string(c), pod))
}

// top returns the path of the cgroup that holds kubepods.
func (n Names) top() string { return n.in(path.Join("/", n.Root)) }

// in returns the path with the names that the driver gives.
func (n Names) in(p string) string {
	switch n.Driver {
	case None:
		return ""
	case Systemd:
		return nested(p)
	default:
		return p
	}
}

// nested turns a/b-c into /a.slice/a-b_c.slice: systemd nests slices by the dashes in their names.
func nested(p string) string {
	out, unit := "", ""
	for part := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		if unit != "" {
			unit += "-"
		}
		unit += strings.ReplaceAll(part, "-", "_")
		out += "/" + unit + ".slice"
	}
	return out
}

// uid returns the uid of the pod whose cgroup has this base name, or "".
func (n Names) uid(base string) string {
	if n.Driver == Systemd {
		unit, ok := strings.CutSuffix(base, ".slice")
		if !ok {
			return ""
		}
		base = strings.ReplaceAll(unit[strings.LastIndex(unit, "-")+1:], "_", "-")
	}
	uid, ok := strings.CutPrefix(base, "pod")
	if !ok || !poduid.Valid(uid) {
		return ""
	}
	return uid
}

// isPod reports whether a path is the cgroup of a pod.
func (n Names) isPod(at string) bool {
	uid := n.uid(path.Base(at))
	return uid != "" && slices.ContainsFunc(classes, func(c Class) bool { return n.Pod(c, uid) == at })
}

// checkUID refuses uids that would lead to another path or could be mistaken for another uid.
func checkUID(uid string) error {
	if !poduid.Valid(uid) {
		return fmt.Errorf("cgroup of pod %q: the uid %s", uid, poduid.Rule)
	}
	return nil
}
