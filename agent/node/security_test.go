package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSELinuxIsEnabledWhereAPolicyIsLoaded(t *testing.T) {
	for _, row := range []struct {
		name  string
		err   error
		kind  int64
		flags int64
		label string
		want  bool
	}{
		{"enabled", nil, unix.SELINUX_MAGIC, 0, "system_u:system_r:init_t:s0\x00", true},
		{"without a policy", nil, unix.SELINUX_MAGIC, 0, "kernel\x00", false},
		{"it is read-only, as in a container", nil, unix.SELINUX_MAGIC, unix.ST_RDONLY, "u:r:container_t:s0\x00", false},
		{"an empty folder is there", nil, unix.SYSFS_MAGIC, 0, "unconfined\n", false},
		{"nothing is there", unix.ENOENT, 0, 0, "unconfined\n", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			label := filepath.Join(t.TempDir(), "current")
			if err := os.WriteFile(label, []byte(row.label), 0o600); err != nil {
				t.Fatal(err)
			}
			statfs := func(_ string, fs *unix.Statfs_t) error {
				fs.Type, fs.Flags = row.kind, row.flags
				return row.err
			}
			if got := (securityFiles{statfs: statfs, label: label}).selinux(); got != row.want {
				t.Errorf("enabled %v, want %v", got, row.want)
			}
			if (securityFiles{statfs: statfs, label: label + ".none"}).selinux() {
				t.Error("enabled for a process without a label")
			}
		})
	}
}

// What the machine has for its security is among the facts that containers are made
// from.
func TestTheMachinesSecurityIsAmongItsFacts(t *testing.T) {
	cpus := t.TempDir()
	var want []string
	for _, cpu := range []string{"cpu0", "cpu2", "cpu10"} {
		dir := filepath.Join(cpus, cpu, "thermal_throttle")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		want = append(want, dir)
	}
	for _, other := range []string{"cpu1", "cpufreq/thermal_throttle"} {
		if err := os.MkdirAll(filepath.Join(cpus, other), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	label := filepath.Join(t.TempDir(), "current")
	if err := os.WriteFile(label, []byte("system_u:system_r:init_t:s0\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	statfs := func(_ string, fs *unix.Statfs_t) error { fs.Type = unix.SELINUX_MAGIC; return nil }
	settings := NodeSettings{NodeName: "n", Root: t.TempDir()}
	m, err := newOn(securityFiles{statfs, label, cpus}, settings, nil, "i", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if host := m.Now(); !host.SELinux || !slices.Equal(host.MaskedPaths, want) {
		t.Errorf("SELinux %v, masked %s, want %s", host.SELinux, host.MaskedPaths, want)
	}
}
