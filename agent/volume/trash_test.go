package volume

import (
	"os"
	"path/filepath"
	"testing"
)

// A removed pod is gone at once; the deletion of its files comes later, and an
// agent that dies in between leaves nothing for good.
func TestARemovedPodsFilesAreDeletedLater(t *testing.T) {
	root := t.TempDir()
	const uid = "0123456789abcdef0123456789abcdef"
	for range 2 { // the same pod again, before the trash is emptied
		dir := filepath.Join(root, "pods", uid, "volumes", "kubernetes.io~empty-dir", "v", "deep")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := TearDown(t.Context(), root, uid); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Join(root, "pods", uid)); !os.IsNotExist(err) {
			t.Errorf("the pod's directory is there: %v", err)
		}
	}
	if got, _ := os.ReadDir(filepath.Join(root, trashDir)); len(got) != 2 {
		t.Errorf("%d directories are in the trash, want 2", len(got))
	}
	if err := EmptyTrash(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadDir(filepath.Join(root, trashDir)); len(got) != 0 {
		t.Errorf("%d directories are left in the trash", len(got))
	}
}
