package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"monopod/agent/managed"
)

// Build compiles monopod as it is released, to dir/monopod, and returns that path.
func Build(dir string) (string, error) {
	bin := filepath.Join(dir, "monopod")
	return bin, goBuild(bin, ".")
}

// goBuild compiles a package, named relative to the module's root, to a small
// static binary.
func goBuild(bin, pkg string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace,nethttpomithttp2", "-ldflags", "-s -w", "-o", bin, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	_, err = output(cmd)
	return err
}

func moduleRoot() (string, error) {
	mod, err := output(exec.Command("go", "env", "GOMOD"))
	if err != nil {
		return "", err
	}
	mod = strings.TrimSpace(mod)
	if mod == "" || mod == os.DevNull {
		return "", errors.New("not inside the monopod checkout")
	}
	return filepath.Dir(mod), nil
}

// binaries returns the path of containerd and the folder that must come first in
// PATH so that it finds its own shim; "" for the distribution's.
func binaries(version string) (containerd, shimDir string, err error) {
	if version == Distro {
		path, err := exec.LookPath("containerd")
		if err != nil {
			return "", "", fmt.Errorf("no containerd in PATH: install it (make deps)")
		}
		return path, "", nil
	}
	cache := os.Getenv("MONOPOD_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", "", fmt.Errorf("no MONOPOD_CACHE and no home folder: %w", err)
		}
		cache = filepath.Join(home, ".cache", "monopod")
	}
	dir := filepath.Join(cache, "containerd-"+version)
	path := filepath.Join(dir, "containerd")
	if _, err := os.Stat(path); err != nil {
		return "", "", fmt.Errorf("no containerd %s in the cache: build it (make deps): %w", version, err)
	}
	return path, dir, nil
}

// versionOf returns a containerd binary's version.
func versionOf(containerd string) (managed.Version, error) {
	out, err := output(exec.Command(containerd, "--version"))
	if err != nil {
		return managed.Version{}, err
	}
	return managed.ParseVersion(out)
}

// Binaries returns the folder of the containerd of that version.
func Binaries(version string) (string, error) {
	path, _, err := binaries(version)
	return filepath.Dir(path), err
}
