package checkpoint

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

func TestTheBootIsReadFromTheKernel(t *testing.T) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skip(err)
	}
	b := ReadBoot()
	if b.ID != strings.TrimSpace(string(id)) || !bootForm.MatchString(b.ID) {
		t.Errorf("the boot is %q", b.ID)
	}
	if b.Since.IsZero() || !b.Since.Before(time.Now()) {
		t.Errorf("it began at %s", b.Since)
	}
	first := b.Mark()
	if second := b.Mark(); first.Boot != b.ID || first.Up <= 0 || second.Up < first.Up {
		t.Errorf("marks %+v and %+v", first, second)
	}
	if m := (Boot{ID: "b"}).Mark(); m != (Mark{Boot: "b"}) {
		t.Errorf("a boot without a clock has the mark %+v", m)
	}
}

func TestWhetherTimeCountsFromAMark(t *testing.T) {
	for _, row := range []struct {
		mark Mark
		want bool
	}{{Mark{}, false}, {Mark{Boot: "b"}, true}, {Mark{Up: 1}, true}, {Mark{"b", time.Hour}, true}} {
		if got := row.mark.Counts(); got != row.want {
			t.Errorf("%+v: %v", row.mark, got)
		}
	}
}

func TestTheLastBootIsThatOfItsFile(t *testing.T) {
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	for _, row := range []struct {
		name, text, want string
		said             bool
	}{
		{"a boot", id + "\n", id, false},
		{"something else", "yesterday\n", "", true},
		{"nothing", "", "", true},
	} {
		var said bytes.Buffer
		r := &Root{Dir: t.TempDir(), log: slog.New(slog.NewTextHandler(&said, nil))}
		if err := os.WriteFile(r.Path("boot"), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := r.LastBoot(r.Path("boot")); got != row.want || (said.Len() > 0) != row.said {
			t.Errorf("%s: %q, said %s", row.name, got, &said)
		}
		said.Reset()
		if got := r.LastBoot(r.Path("none")); got != "" || said.Len() > 0 {
			t.Errorf("no file: %q, said %s", got, &said)
		}
	}
}
