package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesOfAccessAreBounded(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	cert, key, ca, tokens := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca"), filepath.Join(dir, "tokens")
	a.writePair(t, "server", cert, key)
	a.write(t, ca)
	put(t, tokens, []byte("abc\n"))
	log := slog.New(slog.DiscardHandler)
	all := Access{Cert: cert, Key: key, ClientCA: ca, Tokens: tokens}
	if _, err := newGuard(all, log); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{cert, key, ca, tokens} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, path, append(bytes.Repeat([]byte("\n"), 1<<20), good...))
			if _, err := newGuard(all, log); err == nil || !strings.Contains(err.Error(), path+": it is larger than 1048576 bytes") {
				t.Errorf("error %v", err)
			}
			put(t, path, good)
		})
	}
}

// Mounted secrets are links.
func TestFilesOfAccessMayBeLinks(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "..data"), []byte("abc\n"))
	link := filepath.Join(dir, "tokens")
	if err := os.Symlink("..data", link); err != nil {
		t.Fatal(err)
	}
	if all, err := readTokens(link); err != nil || len(all) != 1 {
		t.Errorf("%d tokens, %v", len(all), err)
	}
}
