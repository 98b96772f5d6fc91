package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"monopod/agent/disk"
)

// A node name that cannot be read keeps no agent from starting.
func TestADamagedNodeNameIsNone(t *testing.T) {
	dir := t.TempDir()
	(&Root{Dir: dir}).KeepNodeName("edge5")
	(&Root{Dir: dir}).KeepNodeName("edge7")
	before := disk.WrittenSoFar().Syncs
	(&Root{Dir: dir}).KeepNodeName("edge7")
	if n := disk.WrittenSoFar().Syncs - before; n > 0 {
		t.Errorf("the same name is written with %d calls", n)
	}
	if name, err := NodeName(dir); name != "edge7" || err != nil {
		t.Errorf("kept: %q, %v", name, err)
	}
	one, two := filepath.Join(dir, "node-name"), filepath.Join(dir, "node-name.twin")
	if err := os.WriteFile(one, make([]byte, 6), 0o644); err != nil {
		t.Fatal(err)
	}
	if name, err := NodeName(dir); name != "edge7" || err != nil {
		t.Errorf("one is damaged: %q, %v", name, err)
	}
	must(t, os.Remove(one))
	if name, err := NodeName(dir); name != "edge7" || err != nil {
		t.Errorf("one is gone: %q, %v", name, err)
	}
	if err := errors.Join(os.WriteFile(one, nil, 0o644), os.WriteFile(two, make([]byte, 6), 0o644)); err != nil {
		t.Fatal(err)
	}
	if name, err := NodeName(dir); name != "" || err != nil {
		t.Errorf("both are damaged: %q, %v", name, err)
	}
}
