package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"monopod/agent/e2e/rig"
)

// makePayload makes the disk of what is tested: two versions of the package, the
// end-to-end tests in a folder like theirs with what they read and the programs of their
// images, the benchmark, containerd 2 and pod images; and the CRI-O whose programs are in
// the folder crio, if there is one.
func makePayload(dir, crio, oci string) (disk string, err error) {
	tree := filepath.Join(dir, "payload")
	cache := os.Getenv("MONOPOD_CACHE")
	for _, step := range [][]string{
		{"mkdir", "-p", tree + "/cache", tree + "/programs", tree + "/agent/e2e", tree + "/testdata"},
		{"cp", "-r", "testdata/golden", "testdata/stories", tree + "/testdata/"},
		{"cp", "-r", filepath.Join(cache, "containerd-"+rig.Latest), tree + "/cache/"},
		{"make", "-s", "deb", "ARCHES=amd64", "VERSION=1.0"}, {"make", "-s", "deb", "ARCHES=amd64", "VERSION=2.0"},
		{"cp", "bin/monopod_1.0_amd64.deb", "bin/monopod_2.0_amd64.deb", tree},
		{"go", "test", "-c", "-tags", "e2e", "-ldflags", "-s -w", "-o", tree + "/agent/e2e/e2e.test", "./agent/e2e"},
		{"go", "build", "-ldflags", "-s -w", "-o", tree + "/bench", "./agent/e2e/bench"},
		{"env", "CGO_ENABLED=0", "go", "build", "-ldflags", "-s -w", "-o", tree + "/programs/", "./testdata/images/..."},
	} {
		cmd := exec.Command(step[0], step[1:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	if err := rig.SaveImages(filepath.Join(tree, "images.tar"), tree+"/programs/pause"); err != nil {
		return "", err
	}
	if crio != "" {
		if err := crioPrograms(tree, crio, oci); err != nil {
			return "", err
		}
	}
	disk = filepath.Join(dir, "payload.img")
	if out, err := exec.Command("mke2fs", "-q", "-t", "ext4", "-d", tree, disk, "1G").CombinedOutput(); err != nil {
		return "", fmt.Errorf("make the payload's disk: %w: %s", err, out)
	}
	return disk, os.RemoveAll(tree)
}

// isReproducible: packages of the same sources are the same bytes, for both kinds of
// machines, and lintian finds no error in them.
func isReproducible(b *box) error {
	packages := []string{"bin/monopod_1.0_amd64.deb", "bin/monopod_1.0_arm64.deb"}
	script := "rm -f bin/monopod_1.0_*.deb; make -s deb VERSION=1.0 >&2; sha256sum " + strings.Join(packages, " ")
	var sums [2]string
	for k := range sums {
		out, err := exec.CommandContext(b.ctx, "bash", "-ec", script).Output()
		if err != nil {
			return fmt.Errorf("make deb: %w", err)
		}
		sums[k] = string(out)
	}
	if sums[0] != sums[1] {
		return fmt.Errorf("two builds differ:\n%s%s", sums[0], sums[1])
	}
	args := append([]string{"--fail-on", "error", "--allow-root"}, packages...)
	lintian := exec.CommandContext(b.ctx, "lintian", args...)
	if out, err := lintian.CombinedOutput(); err != nil {
		return fmt.Errorf("lintian: %w\n%s", err, out)
	}
	return nil
}
