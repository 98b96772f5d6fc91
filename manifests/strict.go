package manifests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"monopod/manifests/decode"
)

// Writable returns what another user than root and the agent's own may write of a folder
// of manifests, or of one manifest: who writes there is root on this machine. Each has its
// remedy. The rule is that of sshd for its keys (StrictModes); what is not there or cannot
// be read is left out.
func Writable(dir string) []decode.Problem {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	var found []decode.Problem
	said := map[string]bool{}
	check := func(path string, sticky bool) {
		if said[path] {
			return
		}
		said[path] = true
		if why := writers(path, sticky); why != "" {
			found = append(found, decode.Problem{File: path, Message: why, Warning: true})
		}
	}
	folder := dir
	if !info.IsDir() {
		folder = filepath.Dir(dir)
	}
	folder = resolved(folder)
	check(folder, !info.IsDir())
	paths, err := Paths(dir)
	if err != nil {
		return found
	}
	for _, path := range paths {
		target := resolved(path)
		if info, err := os.Stat(target); err != nil || !info.Mode().IsRegular() {
			continue
		}
		check(target, false)
		if in := filepath.Dir(target); in != folder {
			check(in, true)
		}
	}
	return found
}

// resolved returns the path without symlinks, or as it is where that fails.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// writers says which other users may write a path, and what to do; "": none may. In a
// folder with the sticky bit they may not replace what is there already.
func writers(path string, sticky bool) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Sprintf("belongs to user %d, who can run anything here as root by it: chown root %s", st.Uid, path)
	}
	if sticky && info.Mode()&fs.ModeSticky != 0 || info.Mode().Perm()&0o022 == 0 {
		return ""
	}
	return fmt.Sprintf("may be written by other users (mode %04o), who can run anything here as root by it: chmod go-w %s", info.Mode().Perm(), path)
}

// readers warns of a file of Secrets that others than its owner may read.
func (f *fileState) readers(path string) []decode.Problem {
	for _, o := range f.Objects {
		if o.Secret != nil && f.mode&0o044 != 0 {
			return []decode.Problem{{File: path, Line: o.Line, Column: o.Column, Warning: true, Message: fmt.Sprintf(
				"holds a Secret, and other users may read it (mode %04o): chmod go-r %s", f.mode, path)}}
		}
	}
	return nil
}
