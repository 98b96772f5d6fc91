package volume

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"monopod/agent/safefile"
)

// maxMessage is how much of a termination message counts, from its end.
const maxMessage = 4096

func containersDir(root, uid string) string { return filepath.Join(PodDir(root, uid), "containers") }

// TerminationLog makes a new empty file for one run of a container, open to
// all users, and returns its path.
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
	return path, errors.Join(f.Chmod(0o666), f.Close()) // the umask took bits at creation
}

// TerminationMessage returns the end of a termination log, at most 4096
// bytes; "" if there is none. A container had the file in its hands.
func TerminationMessage(path string) string {
	b, _ := safefile.Tail(path, 0, maxMessage) // what could be read counts
	return string(b)
}
