package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestOtherShellsTakeTheScripts(t *testing.T) {
	for _, shell := range []string{"zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("no %s here: its script is not checked", shell)
			}
			script := filepath.Join(t.TempDir(), "script")
			os.WriteFile(script, []byte(completionScripts[shell]), 0o644)
			if out, err := exec.Command(path, "-n", script).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
