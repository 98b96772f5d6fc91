package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const bothEnforced = "enforceNodeAllocatable: [pods, system-reserved, kube-reserved]\nsystemReserved: {memory: 1Gi}\nkubeReserved: {memory: 2Gi}\n"

// What cannot be held to an amount, or to two at a time, is refused with the file.
func TestCgroupsThatContradictEachOther(t *testing.T) {
	const (
		root  = "names the root, which has no limits and holds the pods in cgroupRoot"
		pods  = "names the cgroup of all pods, kubepods in cgroupRoot"
		inIt  = "names a cgroup in that of all pods, kubepods in cgroupRoot"
		above = "names a cgroup that holds that of all pods, kubepods in cgroupRoot"
		same  = "names the cgroup of systemReservedCgroup, which cannot have two limits"
	)
	for _, row := range []struct{ name, at, system, agent, setting, want string }{
		{"two cgroups", "/", "/system.slice", "/runtime.slice", "", ""},
		{"a cgroup in the other one", "/", "/s", "/s/k", "", ""},
		{"a name that only begins as that of all pods", "/", "/kubepods2", "/kubepods-x", "", ""},
		{"kubepods elsewhere", "/m", "/kubepods", "/m2", "", ""},
		{"one cgroup", "/", "/s", "/s", "kubeReservedCgroup", same},
		{"one cgroup in two ways", "/", "/system.slice", "system.slice/", "kubeReservedCgroup", same},
		{"one slice in two ways", "/", "/a.slice/a-b.slice", "/a-b.slice", "kubeReservedCgroup", same},
		{"the root", "/", "/", "/k", "systemReservedCgroup", root},
		{"the root in another way", "/", "/s", "/k/..", "kubeReservedCgroup", root},
		{"all pods", "/", "/s", "kubepods/", "kubeReservedCgroup", pods},
		{"all pods below a root", "m", "/m//kubepods", "/k", "systemReservedCgroup", pods},
		{"the slice of all pods", "/", "/kubepods.slice", "/k", "systemReservedCgroup", pods},
		{"the slice of all pods below a root", "/m-n", "/m_n.slice/m_n-kubepods.slice", "/k", "systemReservedCgroup", pods},
		{"a class of pods", "/", "/kubepods/burstable", "/k", "systemReservedCgroup", inIt},
		{"the slice of a class of pods", "/", "/s", "kubepods-burstable.slice", "kubeReservedCgroup", inIt},
		{"above all pods", "/m/n", "/m/n", "/k", "systemReservedCgroup", above},
		{"far above all pods", "/m/n", "/s", "/m", "kubeReservedCgroup", above},
		{"a slice above all pods", "/m/n", "/s", "/m.slice/m-n.slice", "kubeReservedCgroup", above},
	} {
		text := bothEnforced + "cgroupRoot: " + row.at + "\nsystemReservedCgroup: " + row.system + "\nkubeReservedCgroup: " + row.agent + "\n"
		_, got := readText(t, t.TempDir(), text, Default())
		if row.want == "" && got == "" {
			continue
		}
		if row.want == "" || !strings.Contains(got, ": "+row.setting+": "+row.want) || strings.Contains(got, "|") {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

func TestCgroupsThatAreNotEnforcedAreNotChecked(t *testing.T) {
	if _, got := readText(t, t.TempDir(), "systemReservedCgroup: /\nkubeReservedCgroup: /kubepods\n", Default()); got != "" {
		t.Error(got)
	}
}

// The flag counts, and the file was read before it.
func TestCgroupsThatContradictAFlag(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(bothEnforced+"systemReservedCgroup: /m\nkubeReservedCgroup: /k\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := map[string]string{"config": path, "cgroup-root": "/m"}
	_, _, err := Read(func(name string) (string, string) {
		if flags[name] == "" {
			return "", ""
		}
		return flags[name], "--" + name
	})
	if err == nil || !strings.HasPrefix(err.Error(), "systemReservedCgroup: names a cgroup that holds that of all pods") {
		t.Error(err)
	}
}
