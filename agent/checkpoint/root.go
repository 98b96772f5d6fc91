package checkpoint

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"monopod/agent/status"
)

// Exists reports whether something may be there.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// CleanEnd is a file in the root dir that is there while no agent runs and the
// last one ended by itself. An agent removes it when it begins to work: so a
// crash, a kill and a power cut leave none, nor does a disk that takes no data.
const CleanEnd = "clean-end"

// EndedCleanly lets the next agent trust the checkpoints. Where it cannot be
// written that one waits a moment longer.
func (r *Root) EndedCleanly() {
	_ = status.WriteFile(r.Path(CleanEnd), nil, 0o600)
}

// Root is the root dir of an agent, taken by a lock for as long as it lives.
type Root struct {
	Dir      string
	Instance string // names the root dir; on every sandbox that is ours
	lock     *os.File
	Users    *podUsers
	Trouble  error // why nothing can be written in it; nil: it can, as far as is known

	mu      sync.RWMutex // held to write while no checkpoint may be written
	claimed string       // the uid of a pod that must not be accepted now, "": none; guarded by mu
}

var instanceForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// OpenRoot makes the root dir where it is missing and takes it for this
// process. It refuses a dir that another agent has. One that was used before may
// be on a disk that takes nothing: see trouble.
func OpenRoot(dir string) (_ *Root, err error) {
	for _, d := range []string{dir, filepath.Join(dir, "pods")} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			return nil, fmt.Errorf("root dir %s cannot be used: %w; choose another with --root", dir, err)
		}
	}
	r := &Root{Dir: dir}
	r.Users = newPodUsers(r)
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	r.Trouble = takesData(dir)
	if err = r.takeLock(); err != nil {
		return nil, err
	}
	r.Instance, err = readInstance(r.Path("instance"))
	return r, err
}

// takeLock takes the lock file, which names the process for whoever comes next.
// The lock counts also where that cannot be written.
func (r *Root) takeLock() (err error) {
	r.lock, err = openLock(r.Path("lock"))
	if err != nil {
		return fmt.Errorf("root dir %s cannot be used: %w; choose another with --root", r.Dir, err)
	}
	if err = unix.Flock(int(r.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		of := ""
		if pid := holder(r.lock); pid != "" {
			of = fmt.Sprintf(" (process %s)", pid)
		}
		return fmt.Errorf("root dir %s is in use by another monopod%s: stop it, or choose another with --root", r.Dir, of)
	}
	// In place: a file that was emptied first may find no room again.
	pid := fmt.Appendf(nil, "%d\n", os.Getpid())
	if _, err = r.lock.WriteAt(pid, 0); err == nil {
		err = r.lock.Truncate(int64(len(pid)))
	}
	if err != nil {
		r.Trouble = cmp.Or(r.Trouble, err)
		_ = r.lock.Truncate(0) // rather no process than a former one
	}
	return nil
}

// takesData returns why a folder's disk takes no data, nil where it does or
// where that cannot be found out without leaving something behind.
func takesData(dir string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		defer unix.Close(fd)
		_, err = unix.Write(fd, make([]byte, 4096))
	}
	if status.Unwritable(err) {
		return fmt.Errorf("write in %s: %w", dir, err)
	}
	return nil
}

// Complain says once that nothing can be written in the root dir. event may be nil.
func (r *Root) Complain(log *slog.Logger, event func(reason, message string)) {
	if r.Trouble == nil {
		return
	}
	const text = "root dir cannot be written: pods that are known run on, new ones wait; make room on its disk, or mount it for writing"
	log.Error(text, "root", r.Dir, "err", r.Trouble)
	if event != nil {
		event("RootDirNotWritable", fmt.Sprintf("%s: %v", text, r.Trouble))
	}
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
		return "", fmt.Errorf("root dir %s is new and cannot be marked: %w; make room on its disk or mount it for writing, or choose another with --root", filepath.Dir(path), err)
	}
	return mark, nil
}

// Path returns the path of something in the root dir.
func (r *Root) Path(parts ...string) string {
	return filepath.Join(append([]string{r.Dir}, parts...)...)
}

// PodDir returns the dir of one pod's instance.
func (r *Root) PodDir(uid string) string { return r.Path("pods", uid) }

func (r *Root) Close() {
	if r.lock != nil {
		r.lock.Close()
		r.lock = nil
	}
}
