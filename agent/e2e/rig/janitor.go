package rig

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// janitorDir names, in the environment, the folder that a janitor cleans up.
const janitorDir = "MONOPOD_RIG_JANITOR"

// Janitor must be the first thing in main or TestMain of every program that opens
// a rig. When this process is a rig's janitor, it waits until the process that
// opened the rig has died, by whatever signal, removes what is left, and exits.
func Janitor() {
	dir := os.Getenv(janitorDir)
	if dir == "" {
		return
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // ends when our parent does
	r := remains{dir: dir}
	if r.recall() == nil {
		n := loadNetwork(dir)
		r.sweep()
		n.close()
	}
	os.Exit(0)
}

// startJanitor starts ourselves once more, as a janitor that holds the lock until
// it has ended. Closing stdin lets it go.
func startJanitor(dir string, lock *os.File) (cmd *exec.Cmd, stdin io.Closer, err error) {
	cmd = exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), janitorDir+"="+dir)
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err = cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start the janitor: %w", err)
	}
	return cmd, stdin, nil
}

// lockMachine lets one rig run at a time, since they look for each other's leaks.
// It calls wait, once, when another one is running.
func lockMachine(path string, wait func()) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return f, nil
	}
	wait()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
