package cnicache

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

const (
	sandbox = "f51c1968518f3c44"
	other   = "88e140784440086a"
	whole   = `{"kind":"cniCacheV1","containerId":"f51c1968518f3c44"}`
)

func note(t *testing.T, dir, of, text string) string {
	t.Helper()
	file := filepath.Join(dir, "pods-"+of+"-eth0")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func exists(file string) bool { _, err := os.Lstat(file); return err == nil }

// runtime takes sandboxes down as the CNI library has one do: not with half a note.
func runtime(file string, calls *int) func(context.Context, string) error {
	return func(context.Context, string) error {
		*calls++
		if b, err := os.ReadFile(file); err == nil && string(b) != whole {
			return errors.New("unexpected end of JSON input")
		}
		return nil
	}
}

func TestHalfANoteDoesNotKeepASandbox(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "cut off": whole[:20], "zeros": "\x00\x00\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			c, calls := Cache{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, 0
			file, others := note(t, c.Dir, sandbox, text), note(t, c.Dir, other, "")
			if err := c.TakeDown(t.Context(), sandbox, runtime(file, &calls)); err != nil || calls != 2 {
				t.Errorf("%v after %d calls", err, calls)
			}
			if exists(file) || !exists(others) {
				t.Errorf("its note exists: %v; that of another sandbox: %v", exists(file), exists(others))
			}
		})
	}
}

func TestAWholeNoteStays(t *testing.T) {
	c, calls := Cache{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, 0
	file, refused := note(t, c.Dir, sandbox, whole), errors.New("device or resource busy")
	err := c.TakeDown(t.Context(), sandbox, func(context.Context, string) error { calls++; return refused })
	if !errors.Is(err, refused) || calls != 1 || !exists(file) {
		t.Errorf("%v after %d calls, the note exists: %v", err, calls, exists(file))
	}
}

func TestASandboxIsNoPattern(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	file := note(t, c.Dir, sandbox, "")
	for _, id := range []string{"*", "????????????????", "../" + sandbox, ""} {
		if mended, err := c.mend(id); mended || err != nil || !exists(file) {
			t.Errorf("%q: mended %v, %v", id, mended, err)
		}
	}
}

func TestALinkIsNotFollowed(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(c.Dir, "pods-"+sandbox+"-eth0")); err != nil {
		t.Fatal(err)
	}
	if mended, err := c.mend(sandbox); mended || err == nil || !exists(secret) {
		t.Errorf("mended %v, %v", mended, err)
	}
}

func TestNoFolderIsNoFault(t *testing.T) {
	refused := errors.New("busy")
	for _, c := range []Cache{{}, {Dir: "/nonexistent"}} {
		if err := c.TakeDown(t.Context(), sandbox, func(context.Context, string) error { return refused }); !errors.Is(err, refused) {
			t.Error(err)
		}
	}
}
