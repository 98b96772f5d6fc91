package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFailSwapOn(t *testing.T) {
	for text, want := range map[string]string{"Filename Type\n": "", "Filename Type\n/dev/sda2 partition\n": "the machine has swap"} {
		path := filepath.Join(t.TempDir(), "swaps")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := checkSwap(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
