package agent

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"monopod/agent/status"
)

// root is the root dir of an agent, taken by a lock for as long as it lives.
type root struct {
	dir      string
	instance string // names the root dir; on every sandbox that is ours
	lock     *os.File
	users    *podUsers

	mu      sync.RWMutex // held to write while no checkpoint may be written
	claimed string       // the uid of a pod that must not be accepted now, "": none; guarded by mu
}

var instanceForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// openRoot makes the root dir where it is missing and takes it for this
// process. It refuses a dir that another agent has.
func openRoot(dir string) (_ *root, err error) {
	for _, d := range []string{dir, filepath.Join(dir, "pods")} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			return nil, fmt.Errorf("root dir %s cannot be used: %w; choose another with --root", dir, err)
		}
	}
	r := &root{dir: dir}
	r.users = newPodUsers(r)
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.lock, err = openLock(r.path("lock")); err != nil {
		return nil, fmt.Errorf("root dir %s cannot be used: %w; choose another with --root", dir, err)
	}
	if err = unix.Flock(int(r.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("root dir %s is in use by another monopod (process %s): stop it, or choose another with --root", dir, holder(r.lock))
	}
	if err = r.lock.Truncate(0); err == nil {
		_, err = fmt.Fprintf(r.lock, "%d\n", os.Getpid())
	}
	if err != nil {
		return nil, fmt.Errorf("root dir %s cannot be written: %w", dir, err)
	}
	r.instance, err = readInstance(r.path("instance"))
	return r, err
}

// readInstance reads the root dir's mark, making it when there is none.
func readInstance(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err == nil {
		id := strings.TrimSpace(string(b))
		if !instanceForm.MatchString(id) {
			return "", fmt.Errorf("%s does not hold 16 hex digits, so no sandbox can be told to be ours: restore it, or remove it to give up the pods of this root dir", path)
		}
		return id, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("instance mark: %w", err)
	}
	id := make([]byte, 8)
	rand.Read(id)
	mark := hex.EncodeToString(id)
	if err := status.WriteFile(path, []byte(mark+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("instance mark: %w", err)
	}
	return mark, nil
}

// path returns the path of something in the root dir.
func (r *root) path(parts ...string) string {
	return filepath.Join(append([]string{r.dir}, parts...)...)
}

// podDir returns the dir of one pod's instance.
func (r *root) podDir(uid string) string { return r.path("pods", uid) }

func (r *root) close() {
	if r.lock != nil {
		r.lock.Close()
		r.lock = nil
	}
}
