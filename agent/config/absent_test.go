package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What relies on something that does not exist here is told apart from what has no effect.
func TestASettingMayAskForWhatDoesNotExist(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"memoryManagerPolicy: None\ntopologyManagerPolicy: none\nmemorySwap: {swapBehavior: NoSwap}\nreservedMemory: []\nqosReserved: {}", ""},
		{"memoryManagerPolicy: ''\nmemorySwap: {}\nreservedMemory: null\n", ""},
		{"memoryManagerPolicy: Static", "1:22: memoryManagerPolicy: "},
		{"topologyManagerPolicy: best-effort", "1:24: topologyManagerPolicy: "},
		{"memorySwap:\n  swapBehavior: LimitedSwap", "2:17: memorySwap.swapBehavior: containers get no swap here"},
		{"cpuManagerPolicy: static\nreservedSystemCPUs: 0-3", ""},
		{"reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]", "1:1: reservedMemory: "},
		{"qosReserved: {memory: 50%}", "1:1: qosReserved: "},
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, warnings, err := ReadFile(path, Default())
		got := ""
		for _, p := range c.Absent {
			got += strings.TrimPrefix(p.Error(), path+":")
		}
		if err != nil || len(warnings) > 0 || (got == "") != (row.want == "") || !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %q, want %q; warned of %v, %v", row.text, got, row.want, warnings, err)
		}
	}
}

// Headers and passwords of requests are secrets, and a file that tells them to others is refused.
func TestAFileOfSettingsThatTellsSecretsToOthersIsRefused(t *testing.T) {
	for _, row := range []struct {
		text string
		mode os.FileMode
		want string // before the file's name
	}{
		{"staticPodURLHeader: {A: [hunter2]}", 0o644, "1:1: staticPodURLHeader: others than its owner can open the file (mode 0644): chmod 600 "},
		{"staticPodURLHeader: {A: [hunter2]}", 0o640, "1:1: staticPodURLHeader: others than its owner can open the file (mode 0640): chmod 600 "},
		{"staticPodURLHeader: {A: [hunter2]}", 0o600, ""},
		{"staticPodURLHeader: {A: [hunter2]}", 0o400, ""},
		{"staticPodURLHeader: {}", 0o644, ""},
		{"staticPodURL: https://me:hunter2@h/x", 0o644, "1:15: staticPodURL: it holds a user or password, and others than its owner can open the file (mode 0644): chmod 600 "},
		{"staticPodURL: https://h/x", 0o644, ""},
		{"maxPods: 7", 0o644, ""},
	} {
		path := filepath.Join(t.TempDir(), "a b.yaml")
		if err := os.WriteFile(path, []byte(row.text), row.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, row.mode); err != nil {
			t.Fatal(err)
		}
		_, _, err := ReadFile(path, Default())
		want := ""
		if row.want != "" {
			want = path + ":" + row.want + "'" + path + "'"
		}
		if got := ""; err != nil {
			if got = err.Error(); got != want {
				t.Errorf("%s (%04o): %s\nwant %s", row.text, row.mode, got, want)
			}
		} else if want != "" {
			t.Errorf("%s (%04o) is accepted", row.text, row.mode)
		}
	}
}
