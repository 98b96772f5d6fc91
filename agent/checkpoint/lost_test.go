package checkpoint

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// Of a file and its twin one is enough: the other is mended, and that is told, also of what was
// read before there was a log.
func TestADamagedTwinIsMendedAndTold(t *testing.T) {
	for _, row := range []struct {
		name   string
		damage func(one, two string) error
		told   bool
	}{
		{"nothing is damaged", func(string, string) error { return nil }, false},
		{"the file is", func(one, _ string) error { return os.WriteFile(one, []byte{0}, 0o600) }, true},
		{"its twin is", func(_, two string) error { return os.WriteFile(two, []byte{0}, 0o600) }, true},
		{"the file is gone", func(one, _ string) error { return os.Remove(one) }, false},
		{"it has no twin", func(_, two string) error { return os.Remove(two) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			first := openTestRoot(t, dir)
			first.Close()
			one, two := first.Path("instance"), first.Path("instance.twin")
			if err := row.damage(one, two); err != nil {
				t.Fatal(err)
			}
			r := openTestRoot(t, dir)
			var said bytes.Buffer
			var events []string
			r.Complain(slog.New(slog.NewTextHandler(&said, nil)), func(reason, _ string) { events = append(events, reason) })
			if r.Instance != first.Instance || (said.Len() > 0) != row.told || (len(events) > 0) != row.told {
				t.Errorf("instance %s, was %s; said %s, events %v", r.Instance, first.Instance, &said, events)
			}
			if row.told && (!strings.Contains(said.String(), "the instance mark was damaged, and is as before") || events[0] != "StateFileDamaged") {
				t.Errorf("said %s, events %v", &said, events)
			}
			for _, path := range []string{one, two} {
				if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), first.Instance) {
					t.Errorf("%s holds %q, %v", path, text, err)
				}
			}
			r.saySoFar()
			if n := strings.Count(said.String(), "was damaged"); row.told && n != 1 || !row.told && n != 0 {
				t.Errorf("it is told %d times", n)
			}
		})
	}
}
