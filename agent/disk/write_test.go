package disk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var n []string
	for _, e := range entries {
		n = append(n, e.Name())
	}
	return strings.Join(n, " ")
}

func TestWriteFileReplacesTheWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod.json")
	for _, want := range []string{"a longer text", "short", ""} {
		if err := WriteFile(path, []byte(want), 0o640); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("read %q, %v; want %q", got, err, want)
		}
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
}

func TestWriteFileThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "taken"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "taken", "f"), filepath.Join(dir, "missing", "f")} {
		if err := WriteFile(path, []byte("x"), 0o600); err == nil || !strings.HasPrefix(err.Error(), "write "+path+": ") {
			t.Errorf("WriteFile(%s) = %v", path, err)
		}
	}
	if got := names(t, dir); got != "taken" {
		t.Errorf("the folder holds %q", got)
	}
}

func TestWriteFilePutsAFolderInItsPlaceAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Error(err)
		}
	}
	if got := names(t, dir); got != "f f.corrupt" {
		t.Errorf("the folder holds %q", got)
	}
}

// A process that writes without end is killed with SIGKILL, again and again:
// the file is always whole, and RemoveTemps removes what lies around.
func TestAKilledWriterLeavesAWholeFile(t *testing.T) {
	const env = "DISK_TEST_WRITE_FOREVER"
	if dir := os.Getenv(env); dir != "" {
		for i := 0; ; i++ {
			data := strings.Repeat(string(rune('a'+i%26)), 1<<20)
			if err := WriteFile(filepath.Join(dir, "f.json"), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	for i := range 10 {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), env+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(30+5*i) * time.Millisecond) // any moment will do
		cmd.Process.Kill()
		cmd.Wait()
		data, err := os.ReadFile(filepath.Join(dir, "f.json"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil || len(data) != 1<<20 || strings.Trim(string(data), string(data[:1])) != "" {
			t.Fatalf("after kill %d the file is torn: %d bytes, %v", i, len(data), err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, TempPrefix+"1"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, RemoveTemps(dir))
	if got := names(t, dir); strings.Contains(got, TempPrefix) {
		t.Errorf("the folder holds %q", got)
	}
}

// An os.File for each would have the poller of the network look at it.
func TestFilesAreWrittenAndReadWithFewAllocations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, row := range []struct {
		what string
		do   func() error
		most float64
	}{
		{"a write", func() error { return WriteFile(path, []byte("text"), 0o600) }, 10},
		{"a file that is so already", func() error { return EnsureFile(path, []byte("text"), 0o600) }, 4},
		{"a read", func() error { return Read(path, func([]byte) error { return nil }) }, 6},
	} {
		n := testing.AllocsPerRun(10, func() { must(t, row.do()) })
		if n > row.most {
			t.Errorf("%s takes %v allocations, want at most %v", row.what, n, row.most)
		}
	}
}

func TestAFileThatOutgrowsItsSizeIsReadWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	text := strings.Repeat("text", 1000)
	write(t, text, path)
	for _, size := range []int64{0, 1, int64(len(text)) - 1, int64(len(text)), limit + 1} {
		fd, err := open(path, os.O_RDONLY)
		must(t, err)
		if b, err := readWhole(fd, size, limit); string(b) != text || err != nil {
			t.Errorf("of %d bytes %d are read: %v", len(text), len(b), err)
		}
		must(t, unix.Close(fd))
	}
	fd, err := open(path, os.O_RDONLY)
	must(t, err)
	defer unix.Close(fd)
	if b, err := readWhole(fd, 1, len(text)-1); err == nil {
		t.Errorf("%d bytes are read, more than allowed", len(b))
	}
}
