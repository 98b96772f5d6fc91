package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
				return &mountTable{within: PodDir(root, "u1"), read: func(real string) ([]mountPoint, error) { reads++; return readMounts(real) }}
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
	dir := t.TempDir()
	long := "8 30 0:8 / /else rw - overlay overlay rw,lowerdir=" + strings.Repeat("/x", 30_000) + "\n"
	table := manyMounts(2000) + long + "9 30 0:9 / " + dir + "/volumes/x\\040y rw - tmpfs tmpfs rw\n" +
		"9 30 0:9 / " + dir + "er rw - tmpfs tmpfs rw\n" + "9 30 0:9 / /a\\040b rw - tmpfs tmpfs rw\n"
	var spent []uint64
	for range 2 {
		spent = append(spent, allocated(func() {
			below, err := mountsIn(strings.NewReader(table), dir)
			if err != nil || len(below) != 1 || below[0].path != dir+"/volumes/x y" || below[0].kind != "tmpfs" {
				t.Fatal(below, err)
			}
		}))
	}
	if spent[1] > 300_000 { // the long line, as its room grows
		t.Errorf("%d bytes of memory for %d of mounts", spent[1], len(table))
	}
	if _, err := mountsIn(strings.NewReader("1 2 3\n"), dir); err == nil {
		t.Error("a line with three fields is understood")
	}
}

func TestATableOfMountsIsReadInTheRoomOfTheOneBefore(t *testing.T) {
	table := manyMounts(200)
	spent := allocated(func() {
		for range 100 {
			_, err := mountsIn(strings.NewReader(table), "/nowhere")
			must(t, err)
		}
	})
	if spent > 100*4<<10 { // the race detector has a pool drop one in four
		t.Errorf("%d bytes of memory for a table", spent/100)
	}
}

// allocated returns how many bytes are allocated meanwhile.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What a link in the pod's directory leads to is looked for among all mounts.
func TestMountsBehindALinkAreSeen(t *testing.T) {
	root := testRoot(t)
	m := setUpPod(t, root, testPod(inMemory("memory", "1Mi")))
	must(t, makeDirs(root, "pods", "u2"))
	must(t, os.Symlink(m["memory"].HostPath, filepath.Join(PodDir(root, "u2"), "link")))
	below, err := newMountTable(PodDir(root, "u2")).below(filepath.Join(PodDir(root, "u2"), "link"))
	if err != nil || len(below) != 1 || below[0].kind != "tmpfs" {
		t.Errorf("%v, %v", below, err)
	}
	must(t, TearDown(t.Context(), root, "u1"))
}

func BenchmarkMountsBelow(b *testing.B) {
	dir, table := b.TempDir(), manyMounts(200)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := mountsIn(strings.NewReader(table), dir); err != nil {
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
