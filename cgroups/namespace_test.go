package cgroups

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheRootOfACgroupNamespaceIsSeen(t *testing.T) {
	const (
		others  = "24 1 0:22 / /proc rw - proc proc rw\n30 24 0:26 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n"
		docker  = "612 610 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n"
		machine = "612 610 0:27 /.. /sys/fs/cgroup rw,relatime shared:4 master:1 - cgroup2 cgroup rw\n"
	)
	for _, c := range []struct {
		name, mountinfo string
		is              bool
	}{
		{"that of a container, as by Docker", others + docker, true},
		{"a cgroup above that of the namespace, by a mount from before it", others + machine, false},
		{"a cgroup below it, by a bind mount", others + strings.Replace(docker, "/ /sys", "/mine /sys", 1), false},
		{"the root of the namespace, above a mount from before it", machine + docker, true},
		{"the root of the namespace, below another mount", docker + machine, false},
		{"a file system in memory above it, as with v1", docker + "613 612 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", false},
		{"mounted elsewhere alone", others, false},
		{"nothing", "", false},
		{"what is no mountinfo", "612 610 0:27 / /sys/fs/cgroup rw -\n/sys/fs/cgroup\n", false},
	} {
		if is := isNamespaceRoot(strings.NewReader(c.mountinfo), "/sys/fs/cgroup"); is != c.is {
			t.Errorf("%s: %v", c.name, is)
		}
	}
}

func TestOnlyAContainersCgroupHoldsAContainer(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, lacks, has string
		is               bool
	}{
		{"a container", "", "", true},
		{"the machine, whose root has no type", "cgroup.type", "", false},
		{"systemd is there", "", "systemd", false},
		{"there is no /proc", "mountinfo", "", false},
	} {
		for name, text := range map[string]string{"cgroup.type": "domain\n", "mountinfo": "612 610 0:27 / " + dir + " rw - cgroup2 cgroup rw\n", "systemd": ""} {
			path := filepath.Join(dir, name)
			_ = os.Remove(path)
			if name == c.lacks || name == "systemd" && name != c.has {
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if is := holdsAContainer(dir, dir+"/mountinfo", dir+"/systemd"); is != c.is {
			t.Errorf("%s: %v", c.name, is)
		}
	}
}
