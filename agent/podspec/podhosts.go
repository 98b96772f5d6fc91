package podspec

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// The first and last line of the section of a hosts file that names pods.
const (
	podsHead = "\n# Pods of this machine, kept up to date by monopod.\n"
	podsFoot = "# End of the pods of this machine.\n"
)

// NamedPod is a pod as listed in the hosts files of other pods.
type NamedPod struct {
	Namespace, Name string   // as in its manifest, without the node's suffix
	IPs             []string // none: it has no line, but still prevents that pods of other namespaces get its name
}

// PodNames are the names of all pods, made once for all readers. They do not change.
type PodNames []podName

type podName struct {
	NamedPod
	full      string // name.namespace
	elsewhere bool   // pods of other namespaces can use its short name, too
	own       bool   // pods of its own namespace can
	loopback  []bool // by address
}

// NamesOfPods returns the names of pods: each has the name name.namespace, and its short name
// unless a pod of the reader's namespace, or several others, have the same, or it is another pod's
// name.namespace.
func NamesOfPods(all []NamedPod) PodNames {
	names := make(PodNames, 0, len(all))
	bearers, full := map[string]int{}, map[string]bool{}
	for _, p := range all {
		bearers[p.Name]++
		full[p.Name+"."+p.Namespace] = true
	}
	for _, p := range all {
		n := podName{full: p.Name + "." + p.Namespace, own: !full[p.Name]}
		n.Namespace, n.Name, n.elsewhere = p.Namespace, p.Name, n.own && bearers[p.Name] == 1
		for _, ip := range p.IPs {
			if a, err := netip.ParseAddr(ip); err == nil && a.Zone() == "" {
				n.IPs, n.loopback = append(n.IPs, ip), append(n.loopback, a.IsLoopback())
			}
		}
		names = append(names, n)
	}
	return names
}

// Section returns the section of a pod's hosts file that lists all pods. own is the content before
// it: a name in it is not listed again, as resolvers return the addresses of all lines with a name.
// nil: no pod has an address.
func (all PodNames) Section(reader *v1.Pod, own []byte) []byte {
	taken := hostsNames(own)
	b := []byte(podsHead)
	for k := range all {
		p := &all[k]
		names := ""
		if (p.elsewhere || p.own && p.Namespace == reader.Namespace) && !taken[p.Name] {
			names = p.Name
		}
		if !taken[p.full] {
			names = strings.TrimSpace(names + " " + p.full)
		}
		for i, ip := range p.IPs {
			// The loopback address of a machine without network would be that of the pod itself in
			// the pod's own network.
			if names != "" && (reader.Spec.HostNetwork || !p.loopback[i]) {
				b = append(append(append(append(b, ip...), '\t'), names...), '\n')
			}
		}
	}
	if len(b) == len(podsHead) {
		return nil
	}
	return append(b, podsFoot...)
}

// hostsNames returns the names in a hosts file.
func hostsNames(file []byte) map[string]bool {
	names := map[string]bool{}
	for line := range bytes.Lines(file) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		for k, name := range strings.Fields(string(line)) {
			if k > 0 {
				names[strings.ToLower(name)] = true
			}
		}
	}
	return names
}

// WithHostsOfPods returns a hosts file with another section that lists pods, or without one. The
// rest stays: what precedes the section, which may be new and is then appended, and what follows
// it. A section without its last line extends to the end of the file.
func WithHostsOfPods(file, section []byte) []byte {
	before, after := file, []byte(nil)
	if at := bytes.LastIndex(file, []byte(podsHead)); at >= 0 {
		before = file[:at]
		rest := file[at+len(podsHead)-1:] // starts at the end of the first line
		if end := bytes.Index(rest, []byte("\n"+podsFoot)); end >= 0 {
			after = rest[end+1+len(podsFoot):]
		}
	}
	if len(section)+len(after) > 0 && len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) {
		before = append(slices.Clone(before), '\n')
	}
	return slices.Concat(before, section, after)
}
