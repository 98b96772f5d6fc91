package volume

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func hugePages(medium v1.StorageMedium, asks ...v1.ResourceName) *v1.Pod {
	v := emptyDir("h")
	v.EmptyDir.Medium = medium
	p := testPod(v)
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse("1")}
	for _, name := range asks {
		p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse("0")
	}
	return p
}

func TestPageSizes(t *testing.T) {
	podLevel := hugePages("HugePages")
	podLevel.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi")}}
	initial := hugePages("HugePages-2Mi")
	initial.Spec.InitContainers = hugePages("", "hugepages-2Mi").Spec.Containers
	for _, row := range []struct {
		name  string
		pod   *v1.Pod
		want  string // option of the mount
		fails string
	}{
		{"the only size", hugePages("HugePages", "hugepages-1Gi"), "pagesize=1073741824", ""},
		{"one of two sizes", hugePages("HugePages-2Mi", "hugepages-1Gi", "hugepages-2Mi"), "pagesize=2097152", ""},
		{"written otherwise", hugePages("HugePages-2048Ki", "hugepages-2Mi"), "pagesize=2097152", ""},
		{"that of an init container", initial, "pagesize=2097152", ""},
		{"that of the pod", podLevel, "pagesize=2097152", ""},
		{"which of two", hugePages("HugePages", "hugepages-1Gi", "hugepages-2Mi"), "", "huge pages of 2 sizes"},
		{"none asked for", hugePages("HugePages"), "", "no container of the pod asks for huge pages"},
		{"another asked for", hugePages("HugePages-2Mi", "hugepages-1Gi"), "", "no container of the pod asks for hugepages-2Mi"},
		{"no size", hugePages("HugePages-big", "hugepages-1Gi"), "", `the size "big"`},
		{"no medium", hugePages("HugePages2Mi", "hugepages-2Mi"), "", "unknown storage medium"},
	} {
		s := &setup{pod: row.pod}
		m, err := s.medium(*row.pod.Spec.Volumes[0].EmptyDir)
		switch {
		case row.fails != "":
			if err == nil || !strings.Contains(err.Error(), row.fails) {
				t.Errorf("%s: got %+v, %v", row.name, m, err)
			}
		case err != nil || m.kind != "hugetlbfs" || m.source != "nodev" || m.options[0] != row.want:
			t.Errorf("%s: got %+v, %v", row.name, m, err)
		}
	}
}

func TestVolumesOfHugePages(t *testing.T) {
	if b, _ := os.ReadFile("/proc/filesystems"); !strings.Contains(string(b), "hugetlbfs") {
		t.Skip("this kernel has no huge pages")
	}
	root := testRoot(t)
	p := hugePages("HugePages", "hugepages-2Mi")
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(777))}
	dir := setUpPod(t, root, p)["h"].HostPath
	setUpPod(t, root, p)
	mounts, err := exec.Command("grep", " "+dir+" ", "/proc/mounts").Output()
	must(t, err)
	if got := string(mounts); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "nodev "+dir+" hugetlbfs rw,") || !strings.Contains(got, "pagesize=2M") {
		t.Errorf("mounts are %q", got)
	}
	if got := mode(t, dir); got&0o070 != 0o070 || got&os.ModeSetgid == 0 {
		t.Errorf("mode %v, want it to be the group's", got)
	}
	must(t, TearDown(t.Context(), root, "u1"))
	if _, err := os.Stat(filepath.Join(root, "pods/u1")); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}
