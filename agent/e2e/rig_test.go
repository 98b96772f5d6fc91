//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/agent/e2e/rig"
)

// TestRig shows that the rig itself works with bare CRI calls, and that it sees
// leaks: a test that cannot fail proves nothing.
func TestRig(t *testing.T) {
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			r := open(t, version)
			ctx := t.Context()
			check(t, r.CRI.Pull(ctx, rig.Busybox))
			host := barePod(r, "host", true)
			check(t, host.Start(ctx, r.CRI))
			check(t, barePod(r, "cni", false).Start(ctx, r.CRI))

			r.Runtime.Kill()
			check(t, r.Runtime.Start(ctx))
			cs, err := r.CRI.Containers(ctx, "bare")
			check(t, err)
			if len(cs) != 2 || cs[0].State != "Running" || cs[1].State != "Running" {
				t.Errorf("after a crash of the runtime: %+v, want two running containers", cs)
			}
			check(t, host.Stop(ctx, r.CRI))

			mount := filepath.Join(r.Dir, "left")
			check(t, os.Mkdir(mount, 0o755))
			if out, err := exec.Command("mount", "-t", "tmpfs", "left", mount).CombinedOutput(); err != nil {
				t.Fatalf("mount: %v: %s", err, out)
			}
			leaks, err := r.Leaks(ctx)
			check(t, err)
			if want := []string{"mount " + mount}; !slices.Equal(leaks, want) {
				t.Errorf("leaks %q, want %q", leaks, want)
			}
			if out, err := exec.Command("umount", mount).CombinedOutput(); err != nil {
				t.Fatalf("umount: %v: %s", err, out)
			}
		})
	}
}

// TestJanitor kills a process that has a rig open: nothing may be left of it.
func TestJanitor(t *testing.T) {
	if os.Getenv("MONOPOD_RIG_ORPHAN") != "" {
		orphan(t)
	}
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.Command(exe, "-test.run", "^TestJanitor$")
	cmd.Env = append(os.Environ(), "MONOPOD_RIG_ORPHAN=1")
	stdout, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	var dir, ip string
	for s := bufio.NewScanner(stdout); s.Scan(); {
		if n, _ := fmt.Sscanf(s.Text(), "ready %s %s", &dir, &ip); n == 2 {
			break
		}
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if dir == "" {
		t.Fatal("the process ended before its pod ran")
	}
	err = rig.Until(t.Context(), 15*time.Second, func() error {
		if _, err := os.Stat(dir); err == nil {
			return fmt.Errorf("%s is still there", dir)
		}
		mounts, _ := os.ReadFile("/proc/self/mountinfo")
		if strings.Contains(string(mounts), dir) {
			return fmt.Errorf("mounts under %s", dir)
		}
		if holdsNeighbour(ip) {
			return fmt.Errorf("an interface in the network of %s", ip)
		}
		return nil
	})
	check(t, err)
}

// orphan opens a rig, runs a pod, says so, and waits to be killed.
func orphan(t *testing.T) {
	r, err := rig.Open(t.Context(), rig.Tested()[0])
	check(t, err)
	p := barePod(r, "cni", false)
	check(t, r.CRI.Pull(t.Context(), rig.Busybox))
	check(t, p.Start(t.Context(), r.CRI))
	ip, err := r.CRI.IP(t.Context(), p.Sandbox)
	check(t, err)
	fmt.Printf("ready %s %s\n", r.Dir, ip)
	select {}
}

// holdsNeighbour says whether an interface of this machine is in the /24 of ip.
func holdsNeighbour(ip string) bool {
	addrs, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.Contains(net.ParseIP(ip))
	})
}

func barePod(r *rig.Rig, name string, hostNetwork bool) *rig.BarePod {
	return &rig.BarePod{Namespace: "bare", Name: name, HostNetwork: hostNetwork, Logs: filepath.Join(r.Dir, "logs"),
		Command: []string{"sleep", "3600"}, Grace: 1}
}

// newest is the version for what is tested on one runtime.
func newest() string { return rig.Tested()[len(rig.Tested())-1] }

// open opens a rig that is closed when the test ends; a leak fails the test.
func open(t *testing.T, version string) *rig.Rig {
	t.Helper()
	return openWith(t, version, func(leaks []string) { t.Errorf("leaks:\n%s", strings.Join(leaks, "\n")) })
}

// openLeaky is open for tests that break off calls to the runtime; leaks are counted.
func openLeaky(t *testing.T, version string) *rig.Rig {
	t.Helper()
	return openWith(t, version, func(leaks []string) { t.Logf("the runtime left %d things, such as %s", len(leaks), leaks[0]) })
}

func openWith(t *testing.T, version string, leaked func([]string)) *rig.Rig {
	t.Helper()
	r, err := rig.Open(t.Context(), version)
	check(t, err)
	t.Cleanup(func() {
		leaks, err := r.Close(context.Background())
		if err != nil {
			t.Errorf("close rig: %v", err)
		}
		if len(leaks) > 0 {
			leaked(leaks)
		}
	})
	return r
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
