package podlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What else than a log stands in its place is neither waited for nor shown,
// however the log is asked for.
func TestWhatIsNoLogIsSaidAtOnce(t *testing.T) {
	secret := folder(t, map[string]string{"0.log": script(0, "o:secret")})
	rows := []struct {
		name, want string
		make       func(pod string) error // a folder c of logs
	}{
		{"a link", "is a link", func(pod string) error {
			return link(filepath.Join(secret, "0.log"), filepath.Join(pod, "c", "0.log"))
		}},
		{"a link of a rotation", "is a link", func(pod string) error {
			return link(filepath.Join(secret, "0.log"), filepath.Join(pod, "c", "0.log.20260504-120010"))
		}},
		{"a pipe", "not a regular file", func(pod string) error {
			return unix.Mkfifo(filepath.Join(pod, "c", "0.log"), 0o600)
		}},
		{"a compressed pipe", "not a regular file", func(pod string) error {
			return unix.Mkfifo(filepath.Join(pod, "c", "0.log.20260504-120010.gz"), 0o600)
		}},
		{"a folder that is a link", "is a link", func(pod string) error {
			return link(secret, filepath.Join(pod, "c"))
		}},
		{"a pod's folder that is a link", "is a link", func(pod string) error {
			return link(filepath.Dir(secret), pod)
		}},
	}
	for _, row := range rows {
		for name, o := range map[string]Options{"read": {}, "tail": {Tail: ptr(5)}, "follow": {Follow: true}, "follow the tail": {Follow: true, Tail: ptr(5)}, "end": {Tail: ptr(0)}} {
			t.Run(row.name+", "+name, func(t *testing.T) {
				pod := filepath.Join(t.TempDir(), "pod")
				dir := filepath.Join(pod, "c")
				if strings.HasPrefix(row.name, "a pod's") {
					dir = filepath.Join(pod, filepath.Base(secret))
				} else if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := row.make(pod); err != nil {
					t.Fatal(err)
				}
				got, err := readAll(t, dir, o)
				if got != "" || err == nil || !strings.Contains(err.Error(), row.want) {
					t.Errorf("read %q, %v", got, err)
				}
			})
		}
	}
}

// link makes a link, in place of an empty folder.
func link(to, at string) error {
	os.Remove(at)
	return os.Symlink(to, at)
}
