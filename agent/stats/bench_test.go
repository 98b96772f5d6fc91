package stats

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// What one look at 100 pods costs, of two containers each, the sandbox among them.
func BenchmarkALook(b *testing.B) {
	for _, row := range trees {
		b.Run(row.tree, func(b *testing.B) {
			h := plant(b, row.tree)
			lengthen(b, h.Cgroup)
			var pods []*v1.Pod
			for k := range 100 {
				uid := "p" + strconv.Itoa(k)
				multiply(b, h.Cgroup, "podabc", "pod"+uid)
				pods = append(pods, parsePod(b, strings.ReplaceAll(webPod, "uid: abc", "uid: "+uid)))
			}
			c := looker(b, h, critest.New(b), row.driver, pods...)
			b.ReportAllocs()
			for b.Loop() {
				if s := c.read(b.Context()); len(s.Pods) != len(pods) || s.Pods[99].Containers[0].Use == nil {
					b.Fatal("pods are missing")
				}
			}
		})
	}
}

// multiply copies the cgroups of a pod to those of another.
func multiply(b *testing.B, mount, from, to string) {
	b.Helper()
	var found []string
	err := filepath.WalkDir(mount, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(filepath.Base(path), from) {
			found = append(found, path)
		}
		return err
	})
	for _, dir := range found {
		if err == nil {
			err = os.CopyFS(filepath.Join(filepath.Dir(dir), strings.Replace(filepath.Base(dir), from, to, 1)), os.DirFS(dir))
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}

// lengthen gives each memory.stat about as many lines as kernels do.
func lengthen(b *testing.B, mount string) {
	b.Helper()
	err := filepath.WalkDir(mount, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "memory.stat" {
			return err
		}
		text, err := os.ReadFile(path)
		for k := range 40 {
			text = append(text, "another_number_"+strconv.Itoa(k)+" 123456789\n"...)
		}
		return errors.Join(err, os.WriteFile(path, text, 0o644))
	})
	if err != nil {
		b.Fatal(err)
	}
}
