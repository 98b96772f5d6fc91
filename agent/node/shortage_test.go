package node

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAShortageNamesWhatIsLeftTheSettingAndTheRemedy(t *testing.T) {
	room := func(disk string, percent int64) Signal { return Signal{percent * 4e8, 4e10, disk} }
	const root, images = "/", "/var/lib/containerd"
	for _, row := range []struct {
		name     string
		seen     Signals
		settings map[string]Threshold // nil: the kubelet's
		full     bool
		want     string
	}{
		{name: "nothing is known"},
		{name: "enough", seen: Signals{"nodefs.available": room(root, 10), "imagefs.available": room(images, 15)}},
		{name: "a disk", seen: Signals{"nodefs.available": room(root, 9), "imagefs.available": room(images, 50)},
			want: "9% of 40 GB is left on the disk at /, less than the 10% of evictionHard nodefs.available: make room there"},
		{name: "two disks", seen: Signals{"nodefs.available": room(root, 9), "imagefs.available": room(images, 12)},
			want: "9% of 40 GB is left on the disk at /, less than the 10% of evictionHard nodefs.available: make room there; " +
				"12% of 40 GB is left on the disk at /var/lib/containerd, less than the 15% of evictionHard imagefs.available: make room there"},
		{name: "one disk for all is one cause, the one that needs more", seen: Signals{"nodefs.available": room(root, 8), "imagefs.available": room(root, 8)},
			want: "8% of 40 GB is left on the disk at /, less than the 15% of evictionHard imagefs.available: make room there"},
		{name: "inodes", seen: Signals{"nodefs.inodesFree": {47, 1000, root}},
			want: "4% of 1000 inodes are left on the disk at /, less than the 5% of evictionHard nodefs.inodesFree: remove files there"},
		{name: "memory", seen: Signals{"memory.available": {Available: 99 << 20, Capacity: 64 << 30}},
			want: "0.1% of 69 GB is left, less than the 100Mi of evictionHard memory.available: stop something, or lower the memory limits of pods"},
		{name: "processes", seen: Signals{"pid.available": {Available: 10, Capacity: 1000}}, settings: map[string]Threshold{"pid.available": {Share: 0.025}},
			want: "1% of 1000 processes are left, less than the 2.5% of evictionHard pid.available: stop what starts so many"},
		{name: "an amount of a disk", seen: Signals{"nodefs.available": room(root, 9)}, settings: map[string]Threshold{"nodefs.available": {Amount: resource.MustParse("5Gi")}},
			want: "9% of 40 GB is left on the disk at /, less than the 5Gi of evictionHard nodefs.available: make room there"},
		{name: "no image can go", seen: Signals{"imagefs.available": room(images, 18)}, full: true,
			want: "18% of 40 GB is left on the disk at /var/lib/containerd, imageGCHighThresholdPercent is 80, and no image there can go: make room there"},
		{name: "no image can go, which the disk says already", seen: Signals{"imagefs.available": room(images, 12)}, full: true,
			want: "12% of 40 GB is left on the disk at /var/lib/containerd, less than the 15% of evictionHard imagefs.available: make room there"},
		{name: "no image can go, and the disk is not known", full: true,
			want: "the disk of the images is more than 80% full (imageGCHighThresholdPercent), and no image there can go: make room there"},
	} {
		if row.settings == nil {
			row.settings = DefaultPressure()
		}
		r := Reporter{Machine: &Node{Cfg: NodeSettings{Pressure: row.settings}}, Full: func() (int, bool) { return 80, row.full }}
		var got []string
		for _, kind := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
			for _, text := range r.shortages(row.seen)[kind] {
				got = append(got, text.String())
				if strings.Contains(text.Public(), "containerd") {
					t.Errorf("%s: all may read %s", row.name, text.Public())
				}
			}
		}
		if got := strings.Join(got, "; "); got != row.want {
			t.Errorf("%s:\n got  %s\n want %s", row.name, got, row.want)
		}
	}
}
