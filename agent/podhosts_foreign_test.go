package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is no file that is safe to write is left alone, said once, and replaced when a
// container starts.
func TestForeignHostsFilesAreLeftAlone(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	for name, spoil := range map[string]func(path string) error{
		"a link":       func(p string) error { return os.Symlink(secret, p) },
		"a pipe":       func(p string) error { return unix.Mkfifo(p, 0o644) },
		"a huge file":  func(p string) error { noErr(t, os.WriteFile(p, []byte("x"), 0o644)); return os.Truncate(p, 1<<40) },
		"another name": func(p string) error { return os.Link(secret, p) },
	} {
		t.Run(name, func(t *testing.T) {
			noErr(t, os.WriteFile(secret, []byte("secret"), 0o600))
			named(t, func(r *rig) {
				r.want(manifest("web", "img:1"), manifest("db", "img:1"))
				r.after(time.Second)
				path := r.hostsFile("default/web-n")
				noErr(t, os.Remove(path))
				noErr(t, spoil(path))
				before, err := os.Lstat(path)
				noErr(t, err)
				for range 2 {
					r.KillSandbox("db-n")
					r.after(10 * time.Minute)
				}
				now, err := os.Lstat(path)
				if err != nil || !os.SameFile(before, now) || now.Size() != before.Size() {
					r.Errorf("it is %+v, was %+v: %v", now, before, err)
				}
				r.says(1, "hosts file is left alone")
				r.sees("default/db-n", r.ip("default/db-n")+"\tdb db.default", r.ip("default/web-n")+"\tweb web.default")
				r.Exit("web-n/c", 1)
				r.after(time.Minute)
				r.expect("default/web-n/c", "default/db-n/c")
				r.sees("default/web-n", r.ip("default/db-n")+"\tdb db.default", r.ip("default/web-n")+"\tweb web.default")
				if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
					r.Errorf("the other file says %q: %v", b, err)
				}
			})
		})
	}
}

// Containers restart on a full disk; names follow once there is room.
func TestNamesFollowOnceThereIsRoom(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		r.stop()
		namesPods(r)
		r.start()
		r.want(manifest("web", "img:1"), manifest("db", "img:1"))
		r.after(time.Second)
		before := []string{r.ip("default/db-n") + "\tdb db.default", r.ip("default/web-n") + "\tweb web.default"}
		junk := fill(r.T, disk)
		r.KillSandbox("db-n")
		r.after(time.Minute)
		r.Exit("web-n/c", 1)
		r.after(10 * time.Minute)
		r.expect("default/db-n/c", "default/web-n/c")           // a new sandbox needs no room
		r.says(2, "hosts file is not up to date; trying again") // once of each pod
		r.sees("default/web-n", before...)
		noErr(r.T, os.Remove(junk))
		r.after(2 * time.Minute)
		for _, pod := range []string{"default/db-n", "default/web-n"} {
			r.sees(pod, r.ip("default/db-n")+"\tdb db.default", r.ip("default/web-n")+"\tweb web.default")
		}
	})
}
