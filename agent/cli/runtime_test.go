package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/config"
	"monopod/agent/managed"
)

// choose settles the runtime on a machine whose PATH is path, and returns what is said.
func choose(t *testing.T, cfg *config.Config, path string) (said string, err error) {
	t.Helper()
	t.Setenv("PATH", path)
	err = chooseRuntime(t.Context(), cfg, []*v1.Pod{{}}, func(format string, args ...any) { said += fmt.Sprintf(format, args...) + "\n" })
	return said, err
}

func TestANamedRuntimeIsTakenWithoutALook(t *testing.T) {
	cfg := config.Config{Endpoint: "unix:///none"}
	if said, err := choose(t, &cfg, "/nix"); err != nil || said != "" || cfg.ManagedRuntime {
		t.Errorf("%+v, %q, %v", cfg.Endpoint, said, err)
	}
}

func TestARunWithoutAnyRuntimeSaysWhatToInstall(t *testing.T) {
	cfg := config.Config{ManagedRuntime: true}
	_, err := choose(t, &cfg, "/nix")
	if err == nil || !strings.Contains(err.Error(), managed.ErrNoBinary.Error()) || !strings.Contains(err.Error(), "--runtime-endpoint") {
		t.Errorf("%v", err)
	}
}

func TestAManagedRuntimeIsSaidWithItsReason(t *testing.T) {
	if managed.Able() != nil {
		t.Skip("no containers can be run here")
	}
	bin := t.TempDir()
	if err := os.WriteFile(bin+"/containerd", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := config.Config{ManagedRuntime: true}
	said, err := choose(t, &cfg, bin)
	if err != nil || !cfg.ManagedRuntime || cfg.Endpoint != "" || !strings.Contains(said, "started for this run: as asked for") {
		t.Errorf("%q, %v", said, err)
	}
}
