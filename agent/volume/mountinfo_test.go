package volume

import (
	"fmt"
	"path/filepath"
	"testing"
)

// A machine with many pods has thousands of mounts: one pass over a pod reads them
// once, however many volumes and parts of volumes there are, and not at all if
// nothing is mounted.
func TestOnePassReadsTheMountsOnce(t *testing.T) {
	root := testRoot(t)
	for _, row := range []struct {
		name   string
		memory int
		want   int
	}{{"three volumes in memory", 3, 1}, {"a volume on disk", 0, 0}} {
		t.Run(row.name, func(t *testing.T) {
			p := testPod(emptyDir("data"))
			for k := range row.memory {
				v := inMemory(fmt.Sprint("m", k), "1Mi")
				p.Spec.Volumes = append(p.Spec.Volumes, v)
				c := &p.Spec.Containers[0]
				c.VolumeMounts = append(c.VolumeMounts, testPod(v).Spec.Containers[0].VolumeMounts...)
			}
			must(t, Prepare(root, "u1"))
			reads := 0
			counted := func() *mountTable {
				return &mountTable{read: func() ([]mountPoint, error) { reads++; return readMounts() }}
			}
			for range 2 { // what is mounted already is seen
				reads = 0
				s := &setup{root: root, pod: p, mounts: counted()}
				mounts, err := s.volumes(t.Context())
				must(t, err)
				if reads != row.want || len(mounts) != row.memory+1 {
					t.Errorf("%d reads for %d volumes, want %d", reads, len(mounts), row.want)
				}
				var parts []SubPathMount
				for k := range 3 {
					part := subPathOf(mounts["data"], fmt.Sprint("part", k))
					part.Index = k
					parts = append(parts, part)
				}
				reads = 0
				paths, err := subPaths(root, "u1", parts, counted())
				must(t, err)
				if reads > 1 || len(paths) != 3 || filepath.Base(paths[2]) != "2" {
					t.Errorf("%d reads for the parts %v", reads, paths)
				}
			}
			if below, err := mountsBelow(root); err != nil || len(below) != row.memory+3 {
				t.Errorf("mounts %v, %v", below, err)
			}
			must(t, TearDown(t.Context(), root, "u1"))
		})
	}
}
