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

	"monopod/agent/disk"
)

// Exists reports whether a path exists, or may exist.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// CleanEnd is a file in the root dir that exists while no agent runs and the last one ended by
// itself. An agent removes it when it starts: it is missing after a crash, a kill, a power cut or
// on a disk that takes no data.
const CleanEnd = "clean-end"

// UncleanBoot is a file in the root dir with the id of the last boot before which the agent had not
// ended by itself, as at a power cut.
const UncleanBoot = "unclean-boot"

// IsNew reports whether no agent has used a root dir.
func IsNew(dir string) bool {
	path := filepath.Join(dir, instanceFile)
	return !Exists(path) && !Exists(disk.TwinOf(path))
}

// instanceFile holds the mark of the root dir, and has a twin.
const instanceFile = "instance"

// EndedCleanly lets the next agent trust the checkpoints. If the file cannot be written, the next
// agent only starts its pods a moment later.
func (r *Root) EndedCleanly() {
	_ = disk.WriteFile(r.Path(CleanEnd), nil, 0o600)
}

// InDoubt reports whether one of the pods with a checkpoint may have crashed the last agent. known
// is the number of these pods. They must not start before the manifests were read: otherwise a user
// could not stop such a pod by removing its manifest.
func (r *Root) InDoubt(known int, log *slog.Logger) bool {
	err := os.Remove(r.Path(CleanEnd))
	if err == nil {
		err = disk.SyncDir(r.Dir) // a power cut must not restore it
	}
	if err != nil && known > 0 {
		log.Warn("the last agent did not end cleanly: pods start once the manifests were read or are known to be unreadable", "pods", known)
	}
	return err != nil
}

// Root is the root dir of an agent, which holds its lock until Close.
type Root struct {
	Dir      string
	Instance string // identifies the root dir; a label of every sandbox of the agent
	Marks    *Marks // of the agent's sandboxes; see ReadAdopted
	lock     *os.File
	Users    *podUsers
	Trouble  error // why the root dir is not writable; nil: it is, as far as known

	mu      sync.RWMutex    // locked while no checkpoint may be saved
	claimed map[string]bool // the uids of pods that must not be accepted now; guarded by mu

	log   *slog.Logger                 // nil: Complain was not called
	event func(reason, message string) // nil: events are not recorded
	said  []loss                       // the losses to report once there is a log

	stored storedPods
	nexts  nameLocks // of next.json, which both the worker of the name and the preparation of its next version write

	objects objectFiles
}

var instanceForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// OpenRoot creates the root dir if it is missing and locks it for this process.
// It fails if another agent holds the lock. A root dir that was used before may
// be on a disk that takes no data: see Trouble.
func OpenRoot(dir string) (_ *Root, err error) {
	for _, d := range []string{dir, filepath.Join(dir, "pods")} {
		if err := disk.MkdirAll(d, 0o750); err != nil {
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
	r.Trouble = takesData(dir, 4096)
	if err = r.takeLock(); err != nil {
		return nil, err
	}
	r.removeTemps()
	r.Marks = &Marks{}
	if OfOthers(dir) != nil { // it becomes the agent's by adoption alone, and an agent is refused until then
		return r, nil
	}
	r.Instance, err = r.readInstance(r.Path(instanceFile))
	r.Marks.Instance = r.Instance
	return r, err
}

// removeTemps removes the temporary files that killed agents left. If one stays, it only takes
// space on the disk.
func (r *Root) removeTemps() {
	folders := []string{r.Dir, r.Path(objectsDir), r.Path(updatesDir), r.Path(historyDir)}
	pods, _ := os.ReadDir(r.Path("pods"))
	for _, p := range pods {
		folders = append(folders, r.PodDir(p.Name()))
	}
	for _, at := range folders {
		_ = disk.RemoveTemps(at)
	}
}

// takeLock locks the lock file and writes the process id into it, for the error of other agents.
// The lock is held even if the id cannot be written.
func (r *Root) takeLock() (err error) {
	r.lock, err = openLock(r.Path("lock"))
	if err != nil {
		return fmt.Errorf("root dir %s cannot be used: %w; choose another with --root", r.Dir, err)
	}
	if err = lockAlone(r.lock); err != nil {
		of := ""
		if pid := holder(r.lock); pid != "" {
			of = fmt.Sprintf(" (process %s)", pid)
		}
		return fmt.Errorf("root dir %s is in use by another monopod%s: stop it, or choose another with --root", r.Dir, of)
	}
	// In place: a full disk may not take a file that was truncated first.
	pid := fmt.Appendf(nil, "%d\n", os.Getpid())
	if _, err = r.lock.WriteAt(pid, 0); err == nil {
		err = r.lock.Truncate(int64(len(pid)))
	}
	if err != nil {
		r.Trouble = cmp.Or(r.Trouble, err)
		_ = r.lock.Truncate(0) // better no process id than a previous one
	}
	return nil
}

// TakesData returns why the disk of the root dir does not take so many bytes now; nil: it does, or
// that cannot be tested. Nothing stays on the disk.
func (r *Root) TakesData(size int) error { return takesData(r.Dir, size) }

// takesData returns why a folder's disk takes no data, nil if it does or if that
// cannot be tested without leaving a file behind.
func takesData(dir string, size int) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		defer unix.Close(fd)
	}
	for chunk := make([]byte, 4096); err == nil && size > 0; {
		var n int
		n, err = unix.Write(fd, chunk)
		size -= n
	}
	if disk.Unwritable(err) {
		return fmt.Errorf("write in %s: %w", dir, err)
	}
	return nil
}

// Complain logs and records what is wrong with the root dir: that it is not writable, and, now and
// later, which of its files are damaged. event may be nil. It is called once, before other methods.
func (r *Root) Complain(log *slog.Logger, event func(reason, message string)) {
	r.log, r.event = log, event
	r.saySoFar()
	if r.Trouble == nil {
		return
	}
	const text = "root dir cannot be written: known pods run on, new pods wait; free space on its disk, or mount it for writing"
	log.Error(text, "root", r.Dir, "err", r.Trouble)
	if event != nil {
		event("RootDirNotWritable", fmt.Sprintf("%s: %v", text, r.Trouble))
	}
}

// readInstance reads the root dir's instance mark, or creates it if there is none.
func (r *Root) readInstance(path string) (id string, err error) {
	err = r.readTwins(path, 0o600, "the instance mark was damaged, and is as before", parseInstance(&id))
	switch damaged := (*disk.Damaged)(nil); {
	case err == nil:
		return id, nil
	case errors.As(err, &damaged):
		return "", fmt.Errorf("%w; so the agent cannot recognize its sandboxes: restore it, or remove it to give up the pods of this root dir", err)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("instance mark: %w", err)
	}
	mark := make([]byte, 8)
	rand.Read(mark)
	id = hex.EncodeToString(mark)
	if err := writeTwins(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("root dir %s is new and cannot be marked: %w; free space on its disk or mount it for writing, or choose another with --root", filepath.Dir(path), err)
	}
	return id, nil
}

// parseInstance returns the func that parses the mark.
func parseInstance(to *string) func([]byte) error {
	return func(b []byte) error {
		id := strings.TrimSpace(string(b))
		if !instanceForm.MatchString(id) {
			return errors.New("it does not hold 16 hex digits")
		}
		*to = id
		return nil
	}
}

// Path returns a path in the root dir.
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
