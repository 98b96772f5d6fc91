package volume

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
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
				return &mountTable{read: func() (string, error) { reads++; return readMounts() }}
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

// manyMounts is the table of a machine with n pods.
func manyMounts(n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, "%d 30 0:%d / /run/containerd/io.containerd.runtime.v2.task/k8s.io/%064x/rootfs rw,relatime shared:%d - overlay overlay rw,lowerdir=/var/lib/containerd/1/fs:/var/lib/containerd/2/fs,upperdir=/u,workdir=/w\n", 100+k, k, k, k)
	}
	return b.String()
}

// Each removal looks for mounts among those of all pods.
func TestOtherMountsCostNoMemory(t *testing.T) {
	dir, table := t.TempDir(), manyMounts(2000)
	table += "9 30 0:9 / " + dir + "/volumes/x\\040y rw - tmpfs tmpfs rw\n" + "9 30 0:9 / " + dir + "er rw - tmpfs tmpfs rw\n"
	look := func() {
		m := mountTable{all: table, done: true}
		if below, err := m.below(dir); err != nil || len(below) != 1 || below[0].path != dir+"/volumes/x y" || below[0].kind != "tmpfs" {
			t.Fatal(below, err)
		}
	}
	if n := testing.AllocsPerRun(10, look); n > 60 {
		t.Errorf("%v allocations among 2,000 mounts", n)
	}
	if _, err := (&mountTable{all: "1 2 3\n", done: true}).below(dir); err == nil {
		t.Error("a line with three fields is understood")
	}
}

func BenchmarkMountsBelow(b *testing.B) {
	dir, table := b.TempDir(), manyMounts(200)
	b.ReportAllocs()
	for b.Loop() {
		m := mountTable{all: table, done: true}
		if _, err := m.below(dir); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrepare(b *testing.B) {
	root := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		if err := errors.Join(makeDirs(root, "pods", "u1"), Prepare(root, "u1")); err != nil {
			b.Fatal(err)
		}
	}
}
