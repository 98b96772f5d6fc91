package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestAttackTheNodeNameIsPrintedWithoutPods(t *testing.T) {
	out, _ := exported(t, volumeRoot(t, nil), "--node-name", "node1", "--for-kubelet", t.TempDir(), filepath.Join(t.TempDir(), "new"))
	if !strings.Contains(out, "--hostname-override=node1") {
		t.Errorf("%s", out)
	}
}
