package managed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

// identity tells a process from a later one with the same pid.
type identity struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // clock ticks since the boot, see proc_pid_stat(5)
	Boot    string `json:"boot"`
	Unit    string `json:"unit,omitempty"` // of systemd's that it is the main process of; with pid 0 it may not have been started
}

// process is a containerd that this agent or a former one started. Signals go by a pidfd, which
// never means another process.
type process struct {
	identity
	fd  *os.File
	cmd *exec.Cmd // nil: it is no child of this agent
	how string    // it ended, if that is known
}

// identify returns the identity of a process that exists.
func identify(pid int) (identity, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return identity{}, err
	}
	started, err := startTime(string(b))
	if err != nil {
		return identity{}, err
	}
	boot, err := bootID()
	return identity{PID: pid, Started: started, Boot: boot}, err
}

// startTime reads the time of a process's start from its stat file. The name of the process, in
// parentheses, may hold anything.
func startTime(stat string) (uint64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("stat of a process: %q", stat)
	}
	return strconv.ParseUint(fields[19], 10, 64) // the 22nd of all
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// exists reports whether the process still exists. An error is why that is not known.
func (i identity) exists() (bool, error) {
	now, err := identify(i.PID)
	now.Unit = i.Unit
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH): // the latter as it goes
		return false, nil
	case err != nil:
		return false, err
	}
	return now == i, nil
}

// open returns the process if it still exists.
func (i identity) open() (*process, error) {
	fd, err := unix.PidfdOpen(i.PID, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true) // kernels before 5.10 do not open it so
	}
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", i.PID, err)
	}
	p := &process{identity: i, fd: os.NewFile(uintptr(fd), "pidfd")}
	now, err := identify(i.PID) // after the fd is there, which stays with this process
	now.Unit = i.Unit
	if err == nil && now != i {
		err = errors.New("another process has its pid")
	}
	if err != nil {
		p.fd.Close()
		return nil, err
	}
	return p, nil
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	raw, err := p.fd.SyscallConn()
	if err != nil {
		return true
	}
	over := false
	_ = raw.Control(func(fd uintptr) { over = readable(fd) })
	return over
}

// readable reports whether the process of a pidfd has ended.
func readable(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// wait waits for the end of the process, and reports whether that came before the end of ctx.
func (p *process) wait(ctx context.Context) bool {
	raw, err := p.fd.SyscallConn()
	if err != nil {
		return false
	}
	defer context.AfterFunc(ctx, func() { _ = p.fd.SetReadDeadline(time.Now()) })()
	if err := raw.Read(readable); err != nil {
		_ = p.fd.SetReadDeadline(time.Time{})
		return false
	}
	p.release()
	return true
}

// release takes the exit code of a child that has ended.
func (p *process) release() {
	if p.cmd != nil {
		_ = p.cmd.Wait() // an error is the state, or about an output that is not read
		p.how = p.cmd.ProcessState.String()
	}
	p.fd.Close()
}

func (p *process) signal(s syscall.Signal) {
	raw, err := p.fd.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), s, nil, 0) })
	}
}

// stop ends the process, by force if it takes longer than patience.
func (p *process) stop(patience time.Duration) {
	p.signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !p.wait(ctx) {
		p.signal(syscall.SIGKILL)
		p.wait(context.Background())
	}
}

const identityFile = "process.json"

// noted returns the process that was started here last, also by a former agent; not known: there was
// none, or a power cut took the note with the process. An error is why the note could not be read.
func (r *Runtime) noted() (i identity, known bool, err error) {
	b, err := os.ReadFile(r.file(identityFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return i, false, nil
	case err != nil:
		return i, false, err
	}
	return i, json.Unmarshal(b, &i) == nil, nil
}

// note records which process was started here, or in which unit one is about to be.
func (r *Runtime) note(i identity) error {
	b, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return disk.WriteFile(r.file(identityFile), append(b, '\n'), 0o600)
}

// takeOver returns the containerd that a former agent left running; nil: there is none. While that is
// not known, it is an error: two of them would have the same folders.
func (r *Runtime) takeOver(ctx context.Context) (*process, error) {
	i, known, err := r.noted()
	if err != nil || !known {
		return nil, err
	}
	if i.PID == 0 { // that agent was killed while systemd started it
		pid, err := mainPID(ctx, i.Unit)
		if err != nil || pid == 0 {
			return nil, err
		}
		return r.adopt(pid, i.Unit)
	}
	exists, err := i.exists()
	if err != nil || !exists {
		return nil, err
	}
	p, err := i.open()
	if err != nil {
		return nil, err
	}
	if p.ended() {
		p.fd.Close()
		return nil, nil
	}
	r.settings.Log.Info("managed runtime is taken over", "pid", i.PID)
	return p, nil
}

// adopt notes a process that was started, and returns it.
func (r *Runtime) adopt(pid int, unit string) (*process, error) {
	i, err := identify(pid)
	if err != nil {
		return nil, err
	}
	i.Unit = unit
	p, err := i.open()
	if err != nil {
		return nil, err
	}
	if err := r.note(i); err != nil {
		p.fd.Close()
		return nil, err
	}
	return p, nil
}

// leastRoom is in bytes.
const leastRoom = 4 << 20

// hasRoom returns why the disk has no room for a containerd that starts: on a full one it loses sight of
// the containers that run (1.6 and 1.7), and pods would get others beside them.
func (r *Runtime) hasRoom() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(r.dir, &fs); err != nil {
		return fmt.Errorf("room on the disk of %s: %w", r.dir, err)
	}
	if left := fs.Bavail * uint64(fs.Bsize); left < leastRoom {
		return fmt.Errorf("%d KiB are left on the disk of %s, too few to find its containers again, which run on: make room for %d KiB", left>>10, r.dir, leastRoom>>10)
	}
	return nil
}

// spawn starts a containerd and notes which one. What it started ends if that fails.
func (r *Runtime) spawn(ctx context.Context) (err error) {
	if err := r.hasRoom(); err != nil {
		return err
	}
	if err := r.writeSettings(); err != nil {
		return err
	}
	if r.settings.Service {
		r.process, err = r.spawnService(ctx)
	} else {
		r.process, err = r.spawnChild()
	}
	if err != nil {
		return errors.Join(err, errors.New(r.lastWords()))
	}
	return nil
}

// child has a program wait for a line on its file descriptor 3 before it becomes another one: it
// ends if none comes.
const child = `read -r line <&3 && exec "$@" 3<&-`

// spawnChild starts a containerd as a child. It waits until it is noted: one that no agent knows
// would never be ended.
func (r *Runtime) spawnChild() (*process, error) {
	if err := keepFormerLog(r.file("log")); err != nil {
		r.settings.Log.Warn("the managed runtime's former log is lost", "err", err)
	}
	log, err := os.OpenFile(r.file("log"), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	wait, begin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer wait.Close()
	defer begin.Close()
	cmd := exec.Command("/bin/sh", "-c", child, "sh", r.binary, "--config", r.file("config.toml"))
	cmd.Env = append(withoutSystemd(os.Environ()), r.path())
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", log, log, []*os.File{wait}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals of a terminal are not for it
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p, err := r.adopt(cmd.Process.Pid, "")
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	p.cmd = cmd
	if _, err := begin.WriteString("\n"); err != nil {
		p.stop(0)
		return nil, err
	}
	return p, nil
}

// path has containerd's folder first: its shim, of the same version, may be beside it.
func (r *Runtime) path() string {
	return "PATH=" + filepath.Dir(r.binary) + ":" + os.Getenv("PATH")
}

// withoutSystemd leaves out what systemd has told the agent, for which containerd would answer.
func withoutSystemd(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "INVOCATION_ID", "JOURNAL_STREAM", "PATH"}, name)
	})
}

// lastWords returns what containerd has printed last that may be why it has ended, or where that
// is.
func (r *Runtime) lastWords() string {
	if r.settings.Service {
		i, _, _ := r.noted()
		return "see journalctl --unit " + cmp.Or(i.Unit, r.units())
	}
	b, err := os.ReadFile(r.file("log"))
	if err != nil {
		return err.Error()
	}
	if line := lastGrave(string(b)); line != "" {
		return line
	}
	return "see " + r.file("log")
}

// lastGrave returns the last line of a log that is no mere warning; "": there is none.
func lastGrave(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range slices.Backward(lines) {
		if line != "" && !strings.Contains(line, "level=warning") && !strings.Contains(line, "level=info") {
			return line
		}
	}
	return ""
}

// forgetFormerBoot removes what only has a meaning in the boot in which it was made: the state of
// processes, which no longer exist, and the addresses of their pods.
func (r *Runtime) forgetFormerBoot(ctx context.Context) error {
	i, known, err := r.noted()
	if err != nil || !known {
		return err
	}
	boot, err := bootID()
	if err != nil || i.Boot == boot {
		return err
	}
	return errors.Join(disk.RemoveAll(ctx, r.file("state")), disk.RemoveAll(ctx, r.file(addresses)))
}
