package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"

	"monopod/agent/disk"
)

// maxMessage is the size of a termination message in bytes, from its end.
const maxMessage = 4096

// messageName matches the name of a termination log.
var messageName = regexp.MustCompile(`^[0-9a-f]{8}$`)

func containersDir(root, uid string) string { return filepath.Join(PodDir(root, uid), "containers") }

// TerminationLog creates an empty file for one run of a container, open to all users, and returns
// its path.
func TerminationLog(root, uid, container string) (string, error) {
	if err := errors.Join(checkName("pod uid", uid), checkName("container", container)); err != nil {
		return "", err
	}
	if err := makeDirs(root, "pods", uid, "containers", container); err != nil {
		return "", err
	}
	path := filepath.Join(containersDir(root, uid), container, fmt.Sprintf("%08x", rand.Uint32()))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return "", err
	}
	return path, errors.Join(f.Chmod(0o666), f.Close()) // the umask removed bits at creation
}

// TerminationMessage returns the end of a termination log, at most 4096 bytes; "" if there is none.
// The container could change the file in any way.
func TerminationMessage(path string) string {
	b, _ := disk.Tail(path, 0, maxMessage) // what could be read is used
	return string(b)
}

// RemoveTerminationLog removes a termination log of a container at the path that the runtime
// reports. It uses only the file name of the path, as the mount may be a volume of the machine.
func RemoveTerminationLog(root, uid, container, path string) error {
	return eachMessage(root, uid, container, func(d *disk.Dir, name string) error {
		if name != filepath.Base(path) {
			return nil
		}
		return d.Remove(name)
	})
}

// SweepTerminationLogs removes all termination logs of a container except those in keep, which are
// compared by file name.
func SweepTerminationLogs(root, uid, container string, keep []string) error {
	names := map[string]bool{}
	for _, path := range keep {
		names[filepath.Base(path)] = true
	}
	return eachMessage(root, uid, container, func(d *disk.Dir, name string) error {
		if names[name] {
			return nil
		}
		return d.Remove(name)
	})
}

// eachMessage calls do for each termination log of a container.
func eachMessage(root, uid, container string, do func(d *disk.Dir, name string) error) error {
	if err := errors.Join(checkName("pod uid", uid), checkName("container", container)); err != nil {
		return err
	}
	d, err := disk.OpenDir(filepath.Join(containersDir(root, uid), container), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Each(func(name string) error {
		if !messageName.MatchString(name) {
			return nil
		}
		if err := do(d, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// HaveTerminationLogs returns the containers of a pod that may have termination logs.
func HaveTerminationLogs(root, uid string) (names []string) {
	if checkName("pod uid", uid) != nil {
		return nil
	}
	entries, _ := os.ReadDir(containersDir(root, uid))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
