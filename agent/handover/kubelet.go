package handover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/disk"
	"monopod/agent/volume"
	"monopod/cgroups"
	"monopod/manifests/shell"
)

// setting is a field of a KubeletConfiguration, in which a kubelet must be as monopod.
type setting struct {
	name  string
	value any    // a string, as YAML has it or without its quotes, or a list of strings
	usual string // what a kubelet has without the field

	suffices func(is any) bool // whether a kubelet's value does; nil: the same one does
}

// isMet reports whether the value that a kubelet's file has does as well as that of the node.
func (s *setting) isMet(is any) bool {
	if s.suffices != nil {
		return s.suffices(is)
	}
	return isSame(fmt.Sprint(is), fmt.Sprint(s.value))
}

// yaml returns the value as YAML.
func (s *setting) yaml() string {
	if text, is := s.value.(string); is {
		return asYAML(text)
	}
	text, _ := json.Marshal(s.value) // strings always can be
	return string(text)
}

// settings returns what a kubelet needs to take over the pods of a node from a folder of manifests.
func (n *Node) settings(manifests string) []setting {
	all := []setting{
		{name: "staticPodPath", value: manifests},
		{name: "podLogsDir", value: n.PodLogs, usual: "/var/log/pods"},
	}
	if n.CgroupDriver != cgroups.None { // else it is not known
		all = append(all, setting{name: "cgroupDriver", value: string(cmp.Or(n.CgroupDriver, cgroups.Cgroupfs)), usual: "cgroupfs"})
	}
	all = append(all, setting{name: "cgroupRoot", value: cmp.Or(n.CgroupRoot, "/"), usual: "/"},
		setting{name: "seccompDefault", value: strconv.FormatBool(n.SeccompDefault), usual: "false"})
	if n.Endpoint != "" {
		all = append(all, setting{name: "containerRuntimeEndpoint", value: n.Endpoint, usual: "unix:///run/containerd/containerd.sock"})
	}
	return append(all, n.admits()...)
}

// usualPods is maxPods of a kubelet without the setting, or with 0.
const usualPods = 110

// admits returns the settings by which a kubelet admits the pods that run, and starts at all.
func (n *Node) admits() []setting {
	most := max(cmp.Or(n.MaxPods, usualPods), int64(n.Pods))
	all := []setting{
		{name: "maxPods", value: strconv.FormatInt(most, 10), usual: strconv.Itoa(usualPods), suffices: n.hasRoom},
		{name: "podsPerCore", value: strconv.FormatInt(n.PodsPerCore, 10), usual: "0", suffices: n.hasRoomByCore},
	}
	if len(n.UnsafeSysctls) > 0 {
		all = append(all, setting{name: "allowedUnsafeSysctls", value: n.UnsafeSysctls, suffices: n.allowsSysctls})
	}
	if n.HasSwap {
		all = append(all, setting{name: "failSwapOn", value: "false", usual: "true"})
	}
	return all
}

// hasRoom reports whether a kubelet's maxPods is enough for the pods.
func (n *Node) hasRoom(is any) bool {
	most, err := strconv.Atoi(fmt.Sprint(is))
	return err == nil && cmp.Or(most, usualPods) >= n.Pods
}

// hasRoomByCore reports whether a kubelet's podsPerCore is enough for the pods; 0 is no bound.
func (n *Node) hasRoomByCore(is any) bool {
	perCore, err := strconv.Atoi(fmt.Sprint(is))
	return err == nil && (perCore == 0 || perCore*n.Cores >= n.Pods)
}

// allowsSysctls reports whether a kubelet's list has all that the node's has.
func (n *Node) allowsSysctls(is any) bool {
	list, _ := is.([]any)
	return !slices.ContainsFunc(n.UnsafeSysctls, func(name string) bool { return !slices.Contains(list, any(name)) })
}

// KubeletSettings returns the part of a KubeletConfiguration, and the flags, with which a kubelet
// takes over the pods of a node from a folder of manifests.
func (n *Node) KubeletSettings(manifests string) string {
	var b strings.Builder
	b.WriteString("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
	for _, s := range n.settings(manifests) {
		fmt.Fprintf(&b, "%s: %s\n", s.name, s.yaml())
	}
	fmt.Fprintf(&b, "# flags: --hostname-override=%s --root-dir=%s\n", n.Name, shell.Word(n.Root))
	return b.String()
}

// asYAML returns a value as YAML: as it is, or quoted if that would be read as another.
func asYAML(value string) string {
	var read map[string]any
	err := yaml.Unmarshal([]byte("value: "+value), &read)
	if err == nil && fmt.Sprint(read["value"]) == value {
		return value
	}
	return strconv.QuoteToASCII(value) // the escapes of Go are some of YAML's
}

// CheckKubelet returns in what a kubelet with this root dir differs from the node, so that it would
// restart pods instead of taking them over; none: nothing that its file of settings tells.
func (n *Node) CheckKubelet(root, manifests string) (differs []string, err error) {
	if !sameDir(root, n.Root) {
		differs = append(differs, fmt.Sprintf("the volumes of the pods are in %s, and not in %s: start the kubelet with --root-dir=%s", n.Root, root, shell.Word(n.Root)))
	}
	mounts, err := os.ReadFile(filepath.Join(n.Proc, "self", "mountinfo"))
	if err != nil {
		return differs, fmt.Errorf("mounts: %w", err)
	}
	if at, isShared := sharedAt(string(mounts), n.Root); !isShared {
		differs = append(differs, fmt.Sprintf("%s is on the mount %s, which is not shared: the kubelet mounts it over itself, which hides volumes in memory and subPaths: mount --make-rshared %s", n.Root, at, shell.Word(at)))
	}
	file := filepath.Join(root, "config.yaml")
	text, err := disk.ReadConfig(file)
	if os.IsNotExist(err) {
		return differs, nil
	}
	has := map[string]any{}
	if err == nil {
		err = yaml.Unmarshal(text, &has)
	}
	if err != nil {
		return differs, fmt.Errorf("settings of the kubelet: %s: %w", file, err)
	}
	for _, s := range n.settings(manifests) {
		is := any(s.usual)
		if value := has[s.name]; value != nil && value != "" {
			is = value
		}
		if !s.isMet(is) {
			differs = append(differs, fmt.Sprintf("%s of %s is %q: set it to %s", s.name, file, fmt.Sprint(is), s.yaml()))
		}
	}
	return differs, nil
}

// isSame reports whether a kubelet makes the same of two values, which may be paths or endpoints.
func isSame(a, b string) bool {
	path := func(s string) string { return filepath.Clean(strings.TrimPrefix(s, "unix://")) }
	return path(a) == path(b)
}

// sharedAt returns the mount point that holds a path, and whether mounts below it are shared.
// mountinfo is as in proc_pid_mountinfo(5).
func sharedAt(mountinfo, path string) (at string, isShared bool) {
	for line := range strings.Lines(mountinfo) {
		fields := strings.Split(strings.TrimSpace(line), " ") // paths may have other blanks than spaces
		if len(fields) < 7 {
			continue
		}
		point := volume.Unescape(fields[4])
		inside := path == point || strings.HasPrefix(path, strings.TrimSuffix(point, "/")+"/")
		if inside && len(point) >= len(at) { // the last one of a point covers the others
			at, isShared = point, strings.HasPrefix(fields[6], "shared:")
		}
	}
	return at, isShared
}

// sameDir reports whether two paths lead to one directory.
func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// DriverOfAny returns the driver that made the cgroups of any of these pods.
func DriverOfAny(mount, root string, pods []*v1.Pod) cgroups.Driver {
	for _, p := range pods {
		if d := DriverOf(mount, root, p); d != cgroups.None {
			return d
		}
	}
	return cgroups.None
}
