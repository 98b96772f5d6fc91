package socket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheSocketTakesNobodysPlace(t *testing.T) {
	long := "/tmp/" + strings.Repeat("x", 103)
	rows := []struct {
		name    string
		prepare func(t *testing.T, path string)
		err     string
	}{
		{"nothing there", func(*testing.T, string) {}, ""},
		{"a socket that no process answers on", func(t *testing.T, path string) {
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
		}, ""},
		{"a live server", func(t *testing.T, path string) {
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}, "something answers there already: is another monopod running?"},
		{"a file", func(t *testing.T, path string) { os.WriteFile(path, []byte("precious"), 0o600) }, "it exists and is not a socket"},
		{"a folder", func(t *testing.T, path string) { os.Mkdir(path, 0o700) }, "it exists and is not a socket"},
		{"a link", func(t *testing.T, path string) { os.Symlink("/nowhere", path) }, "it exists and is not a socket"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			r.prepare(t, path)
			before, _ := os.Lstat(path)
			s, err := Listen(path)
			if r.err != "" {
				if want := "listen on " + path + ": " + r.err; err == nil || err.Error() != want {
					t.Errorf("Listen = %v\nwant     %s", err, want)
				}
				if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
					t.Errorf("what was there is gone: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if fi, err := os.Lstat(path); err != nil || fi.Mode() != os.ModeSocket|0o600 {
				t.Errorf("the socket has mode %v, %v", fi.Mode(), err)
			}
		})
	}
	for path, want := range map[string]string{
		long:                  "the path has 108 bytes, a socket takes at most 107",
		"/no/such/folder/s":   "the folder /no/such/folder does not exist",
		"/proc/self/status/s": "not a directory",
	} {
		if _, err := Listen(path); err == nil || err.Error() != "listen on "+path+": "+want {
			t.Errorf("Listen = %v\nwant     listen on %s: %s", err, path, want)
		}
	}
}

func TestTheMaximumPathOfASocketWorks(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "m")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := Listen(dir + "/" + strings.Repeat("x", pathMax-len(dir)-1))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestOnlyItsOwnFileIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listen := func() *Socket {
		s, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	first := listen()
	os.Remove(path)
	second := listen()
	first.Remove()
	second.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("another's is removed, or Close removes it: %v", err)
	}
	second.Remove()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("its own stays: %v", err)
	}
}
