package cri

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindTakesTheFirstSocketThatExists(t *testing.T) {
	root, err := os.MkdirTemp("/tmp", "find-") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if endpoint, err := findUnder(root); err == nil || !strings.Contains(err.Error(), "neither /run/containerd/containerd.sock nor /run/crio/crio.sock") {
		t.Errorf("nothing there: %q, %v", endpoint, err)
	}
	containerd := filepath.Join(root, "run/containerd/containerd.sock")
	crio := filepath.Join(root, "run/crio/crio.sock")
	if err := os.MkdirAll(containerd, 0o755); err != nil { // a folder is no socket
		t.Fatal(err)
	}
	listen(t, crio)
	if endpoint, err := findUnder(root); err != nil || endpoint != "unix://"+crio {
		t.Errorf("CRI-O alone: %q, %v", endpoint, err)
	}
	if err := os.Remove(containerd); err != nil {
		t.Fatal(err)
	}
	listen(t, containerd)
	if endpoint, err := findUnder(root); err != nil || endpoint != "unix://"+containerd {
		t.Errorf("both: %q, %v", endpoint, err)
	}
}

func listen(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}
