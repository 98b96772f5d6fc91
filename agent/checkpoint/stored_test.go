package checkpoint

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// A folder of a pod is of no pod if it has no checkpoint; what was read or written once is not
// read again for that.
func TestWhatIsLeftOfAPod(t *testing.T) {
	folder := func(r *Root) error { return os.MkdirAll(r.PodDir("u1"), 0o750) }
	spoil := func(r *Root) error { return os.WriteFile(r.checkpoint("u1"), []byte("{"), 0o600) }
	save := func(r *Root) error { return r.Save(instanceOf("u1", "img:1", 0)) }
	for _, row := range []struct {
		name string
		make func(r *Root) error
		want Remnant
	}{
		{"nothing", func(*Root) error { return nil }, NoRemnant},
		{"a folder", folder, Orphaned},
		{"a checkpoint", save, NoRemnant},
		{"a checkpoint of a former agent", func(r *Root) error { return save(&Root{Dir: r.Dir}) }, NoRemnant},
		{"one that was written, and is spoilt since", func(r *Root) error { return errors.Join(save(r), spoil(r)) }, NoRemnant},
		{"one that was written, and is gone", func(r *Root) error { return errors.Join(save(r), os.Remove(r.checkpoint("u1"))) }, Orphaned},
		{"one that cannot be read", func(r *Root) error { return errors.Join(folder(r), spoil(r)) }, Unreadable},
	} {
		r := openTestRoot(t, t.TempDir())
		if err := row.make(r); err != nil {
			t.Fatal(err)
		}
		if got := r.Remnant("u1"); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// While what is left of a pod is removed, none with its uid is accepted.
func TestWhatIsLeftOfAPodIsClaimedOnce(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	c := instanceOf("u1", "img:1", 0)
	if _, free := r.Claim("u1"); free {
		t.Error("a pod of which nothing is left is claimed")
	}
	if err := errors.Join(os.MkdirAll(r.PodDir("u1"), 0o750), os.MkdirAll(r.PodDir("u2"), 0o750)); err != nil {
		t.Fatal(err)
	}
	release, free := r.Claim("u1")
	if !free {
		t.Fatal("it is not claimed")
	}
	if _, free := r.Claim("u1"); free {
		t.Error("it is claimed twice")
	}
	other, free := r.Claim("u2")
	if !free {
		t.Fatal("another one is not claimed beside it")
	}
	other()
	if err := r.Save(c); err == nil || !strings.Contains(err.Error(), "is being removed") {
		t.Errorf("it is accepted meanwhile: %v", err)
	}
	release()
	if err := r.Save(c); err != nil {
		t.Errorf("it is not accepted after that: %v", err)
	}
	if _, free := r.Claim("u1"); free {
		t.Error("a pod that is accepted is claimed")
	}
}
