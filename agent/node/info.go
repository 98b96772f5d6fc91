package node

import (
	"bufio"
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Limits of the image list in a Node: images, and names of each, as the kubelet's.
const (
	nodeImagesMost     = 50
	nodeImageNamesMost = 5
)

// ReadNodeInfo reads the identity of the machine whose root directory is root.
func ReadNodeInfo(root, bootID, version string) v1.NodeSystemInfo {
	first := func(paths ...string) string {
		for _, p := range paths {
			b, err := os.ReadFile(filepath.Join(root, p))
			if text := string(bytes.Trim(b, " \n\x00")); err == nil && text != "" {
				return text
			}
		}
		return ""
	}
	info := v1.NodeSystemInfo{
		MachineID: first("etc/machine-id", "var/lib/dbus/machine-id"),
		SystemUUID: first("sys/class/dmi/id/product_uuid", "proc/device-tree/system-id", "proc/device-tree/vm,uuid",
			"etc/machine-id"),
		BootID: bootID, OSImage: osImage(root),
		OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
		KubeletVersion: KubeletVersion(version), ContainerRuntimeVersion: "Unknown",
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		info.KernelVersion = unix.ByteSliceToString(u.Release[:])
	}
	return info
}

// osImage returns the name of the operating system.
func osImage(root string) string {
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		f, err := os.Open(filepath.Join(root, path))
		if err != nil {
			continue
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, ok := strings.CutPrefix(s.Text(), "PRETTY_NAME="); ok {
				return cmp.Or(strings.Trim(name, `"' `), "Linux")
			}
		}
		return "Linux"
	}
	return "Linux"
}

// likeKubelet is the version of the kubelet that the agent imitates.
const likeKubelet = "v1.36.3"

var notInBuild = regexp.MustCompile(`[^0-9A-Za-z.-]`)

// KubeletVersion returns the version for readers that decide by a kubelet's version:
// that of the imitated kubelet, with monopod's own as build metadata (semver.org,
// item 10), such as v1.36.3+monopod.v1.2.3.
func KubeletVersion(version string) string {
	return likeKubelet + "+monopod." + notInBuild.ReplaceAllString(cmp.Or(version, "devel"), "-")
}

// NodeImages returns the largest images, with their digests before their tags.
func NodeImages(all []*rt.Image) []v1.ContainerImage {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *rt.Image) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Id, b.Id))
	})
	var out []v1.ContainerImage
	for _, i := range sorted[:min(len(sorted), nodeImagesMost)] {
		names := slices.Concat(i.RepoDigests, i.RepoTags)
		out = append(out, v1.ContainerImage{Names: names[:min(len(names), nodeImageNamesMost)], SizeBytes: int64(i.Size)})
	}
	return out
}
