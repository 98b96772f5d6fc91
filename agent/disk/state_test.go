package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

type record struct {
	Name string `json:"name"`
}

// The beginning, with the checksum, is no exception.
func TestNoFlippedBitOfASealedFileIsTrusted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	whole := append(Seal([]byte(`{"name":"web"}`)), '\n')
	for k := range 8 * (len(whole) - 1) {
		b := append([]byte(nil), whole...)
		b[k/8] ^= 1 << (k % 8)
		write(t, string(b), path)
		var r record
		err := Read(path, JSON(&r))
		if d := (*Damaged)(nil); !errors.As(err, &d) && r.Name != "web" {
			t.Fatalf("bit %d flipped: %q is read as %+v, %v", k, b, r, err)
		}
	}
}

func TestSealPutsTheChecksumFirst(t *testing.T) {
	for object, rest := range map[string]string{`{"name":"web"}`: `","name":"web"}`, " {}\n": `"}`} {
		if got := string(Seal([]byte(object))); got != head+sum([]byte(rest))+rest {
			t.Errorf("%s becomes %s", object, got)
		}
	}
	object := []byte(`{"name":"` + strings.Repeat("x", 1000) + `"}`)
	if n := testing.AllocsPerRun(10, func() { _ = append(Seal(object), '\n') }); n > 3 {
		t.Errorf("%v allocations", n)
	}
}

func TestFilesWithAndWithoutAChecksumAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, object := range []string{`{"name":"web"}`, `{}`, "{\"url\":\"x\"}\n"} {
		for _, b := range [][]byte{[]byte(object), Seal([]byte(object))} {
			write(t, string(b), path)
			var r record
			if err := Read(path, JSON(&r)); err != nil || strings.Contains(object, "web") && r.Name != "web" {
				t.Errorf("%s: %+v, %v", b, r, err)
			}
		}
	}
}

func TestADamagedFileIsPutAsideOnceAndQuotesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for range 2 {
		write(t, `{"name":"secret`, path)
		err := ReadOrAside(path, JSON(&record{}))
		if err == nil || !strings.HasPrefix(err.Error(), path+" is damaged: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("the error is %v", err)
		}
		if err := ReadOrAside(path, JSON(&record{})); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is told of again: %v", err)
		}
	}
	if all, _ := filepath.Glob(path + "*"); len(all) != 1 || all[0] != path+".corrupt" {
		t.Errorf("there are %v", all)
	}
}

func TestOneOfTwoTwinsIsEnough(t *testing.T) {
	const good = `{"name":"web"}`
	twin, err := Twin([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, file, twin string
		again, damaged   bool
	}{
		{"both", good, string(twin), false, false},
		{"an older agent's, without a twin", good, "", true, false},
		{"the file is another valid one", `{"name":"wec"}`, string(twin), true, true},
		{"the file is empty", "", string(twin), true, true},
		{"the twin has no checksum", good, `{"content":"x"}`, true, true},
		{"the twin is cut off", good, string(twin[:20]), true, true},
		{"the file is gone", "", string(twin), true, false},
		{"the file is gone, and the twin is cut off", "", string(twin[:20]), false, false},
		{"neither", "{", "{", false, true},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if !strings.HasPrefix(row.name, "the file is gone") {
			write(t, row.file, path)
		}
		if row.twin != "" {
			write(t, row.twin, TwinOf(path))
		}
		again, err := ReadTwin(path, JSON(&record{}))
		var d *Damaged
		if (again != nil) != row.again || again != nil && string(again) != good || errors.As(err, &d) != row.damaged {
			t.Errorf("%s: %q, %v", row.name, again, err)
		}
	}
}
