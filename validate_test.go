package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The agent would run only one of them.
func TestValidateRefusesTheSecondPodOfAUID(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: u-1}\nspec: {containers: [{name: c, image: i}]}\n"
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	runTable(t, &b, "validate", "--node-name", "n", dir)
	said := b.String()
	for _, want := range []string{filepath.Join(dir, "b.yaml") + ": metadata.uid: ", "a.yaml gives the pod default/a-n with the uid u-1 already", "[2]\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	b.Reset()
	if runTable(t, &b, "validate", "--node-name", "n", filepath.Join(dir, "a.yaml")); strings.Contains(b.String(), "[2]") {
		t.Errorf("one alone is refused:\n%s", b.String())
	}
}
