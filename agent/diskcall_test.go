package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A diskCall is a call of the kernel that changes what is on a disk: the file is named by a path
// below an open folder, or is open itself.
type diskCall struct {
	name      string
	dir, path int // which arguments these are; path is none for an open file
}

// none is no argument.
const none = -1

var diskCalls = map[uintptr]diskCall{
	unix.SYS_OPENAT:    {"create", 0, 1}, // if it may make the file, or cut it
	unix.SYS_MKDIRAT:   {"mkdir", 0, 1},
	unix.SYS_UNLINKAT:  {"remove", 0, 1},
	unix.SYS_RENAMEAT:  {"rename", 2, 3},
	unix.SYS_RENAMEAT2: {"rename", 2, 3},
	unix.SYS_LINKAT:    {"link", 2, 3},
	unix.SYS_SYMLINKAT: {"symlink", 1, 2},
	unix.SYS_FCHMODAT:  {"chmod", 0, 1},
	unix.SYS_FCHMOD:    {"chmod", 0, none},
	unix.SYS_FCHOWNAT:  {"chown", 0, 1},
	unix.SYS_FTRUNCATE: {"truncate", 0, none},
	unix.SYS_WRITE:     {"write", 0, none},
	unix.SYS_PWRITE64:  {"write", 0, none},
}

// diskWatch is this process' end of a line to the one that sees its disk calls before they are
// made. It is one goroutine's.
type diskWatch struct{ line int }

// watchOrder asks for the nth call below a folder to find a copy of that folder taken; 0: none. Or
// the disk refuses that call, and all after it.
type watchOrder struct {
	Dir, Kept string
	Nth       int
	Refuses   syscall.Errno // 0: nothing
}

// begin lets the disk calls below a folder count.
func (w diskWatch) begin(o watchOrder) error {
	_, err := w.ask(o)
	return err
}

// end returns the calls that there were.
func (w diskWatch) end() ([]string, error) { return w.ask(watchOrder{}) }

// ask sends an order and returns the calls that were counted for the one before. It blocks in the
// kernel, so that no time passes in a bubble meanwhile.
func (w diskWatch) ask(o watchOrder) (calls []string, err error) {
	b, err := json.Marshal(o)
	if err == nil {
		_, err = unix.Write(w.line, b)
	}
	if err != nil {
		return nil, err
	}
	b = make([]byte, 1<<20)
	n, err := unix.Read(w.line, b)
	if err != nil {
		return nil, err
	}
	return calls, json.Unmarshal(b[:n], &calls)
}

// diskLine is the number of the line to the process that watches, in one that is watched.
const diskLine = 3

// watchedSelf lets the process that started this one see its disk calls from now on.
func watchedSelf() (diskWatch, error) {
	listener, err := tellDiskCalls()
	if err != nil {
		return diskWatch{}, err
	}
	defer unix.Close(listener)
	return diskWatch{diskLine}, unix.Sendmsg(diskLine, []byte("listener"), unix.UnixRights(listener), nil, 0)
}

// tellDiskCalls has the kernel ask, before each disk call of this process, the holder of the file
// that it returns (seccomp_unotify(2)). It cannot be taken back.
func tellDiskCalls() (listener int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	filter := diskFilter()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}

// diskFilter is the program that picks the disk calls.
func diskFilter() []unix.SockFilter {
	const number, flags = 0, 16 + 2*8 // in struct seccomp_data: nr, and the low half of the third argument
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	out := []unix.SockFilter{load(number)}
	for nr := range diskCalls {
		if nr == unix.SYS_OPENAT {
			continue
		}
		out = append(out, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(nr)}, answer(unix.SECCOMP_RET_USER_NOTIF))
	}
	return append(out, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_OPENAT}, load(flags),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: unix.O_CREAT | unix.O_TRUNC}, answer(unix.SECCOMP_RET_USER_NOTIF),
		answer(unix.SECCOMP_RET_ALLOW))
}

// notification is struct seccomp_notif, and verdict struct seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type verdict struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// watcher sees the disk calls of a process that it started.
type watcher struct {
	mu    sync.Mutex
	order watchOrder
	calls []string
	err   error // of the copy
}

// runWatched runs a test again, in a process whose disk calls this one sees. There it goes on with
// the line to this one; ok is false here, where the other process has said all.
func runWatched(t *testing.T) (w diskWatch, ok bool) {
	t.Helper()
	const env = "MONOPOD_DISK_CALLS_ARE_SEEN"
	if os.Getenv(env) != "" {
		w, err := watchedSelf()
		if err != nil {
			t.Skip("NOT TESTED: this kernel does not report disk calls: ", err)
		}
		return w, true
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	noErr(t, err)
	defer unix.Close(ends[0])
	other := os.NewFile(uintptr(ends[1]), "line")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.cpu=1") // as make unit, and for its reason
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), env+"=1"), []*os.File{other}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	noErr(t, cmd.Start())
	other.Close()
	var see watcher
	var all sync.WaitGroup
	all.Go(func() { see.serve(ends[0]) })
	failed := cmd.Wait()
	all.Wait()
	switch {
	case failed != nil || see.err != nil:
		t.Errorf("%v\n%s", errors.Join(failed, see.err), said.String())
	case strings.Contains(said.String(), "--- SKIP"):
		t.Skip(said.String())
	default:
		t.Log(said.String())
	}
	return diskWatch{}, false
}

// serve answers the other end of a line until that is closed.
func (w *watcher) serve(line int) {
	b, rights := make([]byte, 1<<16), make([]byte, 64)
	n, size, _, _, err := unix.Recvmsg(line, b, rights, 0)
	if err != nil || n == 0 {
		return // it could not be watched
	}
	listener, err := listenerIn(rights[:size])
	if err != nil {
		w.err = err
		return
	}
	var all sync.WaitGroup
	all.Go(func() { w.listen(listener) })
	defer all.Wait()
	for {
		n, err := unix.Read(line, b)
		if err != nil || n == 0 {
			return
		}
		answer, err := json.Marshal(w.take(b[:n]))
		if err == nil {
			_, err = unix.Write(line, answer)
		}
		if err != nil {
			return
		}
	}
}

func listenerIn(rights []byte) (int, error) {
	all, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(all) != 1 {
		return -1, fmt.Errorf("%d messages: %w", len(all), err)
	}
	fds, err := unix.ParseUnixRights(&all[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// take begins with an order, and returns the calls of the one before.
func (w *watcher) take(order []byte) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls, w.order = nil, watchOrder{}
	if err := json.Unmarshal(order, &w.order); err != nil {
		w.err = err
	}
	return calls
}

// listen lets the disk calls go on once they were seen, until the process is gone.
func (w *watcher) listen(listener int) {
	defer unix.Close(listener)
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err == unix.EINTR {
			continue
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		if errno != 0 { // the call is not made any more
			continue
		}
		v := verdict{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		refusal := w.see(&n)
		if refusal != 0 {
			v = verdict{id: n.id, errno: -int32(refusal)}
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v)))
	}
}

// see counts a call, and takes the copy before the one for which it is asked. It returns with what
// the disk refuses the call; 0: it takes it.
func (w *watcher) see(n *notification) syscall.Errno {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.order.Dir == "" {
		return 0
	}
	call := diskCalls[uintptr(n.nr)]
	path, below := strings.CutPrefix(n.path(call), w.order.Dir+"/")
	if !below || isReport(path) {
		return 0
	}
	w.calls = append(w.calls, call.name+" "+nameless.ReplaceAllString(path, "*"))
	switch {
	case w.order.Refuses != 0 && len(w.calls) >= w.order.Nth:
		return w.order.refusal(call.name, path)
	case len(w.calls) == w.order.Nth:
		out, err := exec.Command("cp", "-a", w.order.Dir, w.order.Kept).CombinedOutput()
		if err != nil {
			w.err = fmt.Errorf("copy: %w: %s", err, out)
		}
	}
	return 0
}

// refusal returns with what the disk refuses a call; 0: it takes it. A full one takes what needs no
// room, and any says of what is there that it is.
func (o *watchOrder) refusal(call, path string) syscall.Errno {
	_, err := os.Lstat(filepath.Join(o.Dir, path))
	isThere := err == nil
	switch {
	case call == "mkdir" && isThere:
		return 0
	case o.Refuses == unix.ENOSPC && (call == "remove" || call == "rename" || call == "chmod" || call == "chown" || call == "truncate" || call == "create" && isThere):
		return 0
	}
	return o.Refuses
}

// isReport reports whether a file of the root dir says what is, and is no state.
func isReport(path string) bool {
	return strings.HasPrefix(path, "status/") || strings.HasPrefix(path, "logs/")
}

// nameless are the parts of paths that are others each time.
var nameless = regexp.MustCompile(`[0-9a-f]{32}|[0-9]{5,}`)

// path returns the path that a call is about.
func (n *notification) path(c diskCall) string {
	proc := fmt.Sprintf("/proc/%d", n.pid)
	folder := func(arg int) string {
		if int32(n.args[arg]) == unix.AT_FDCWD {
			at, _ := os.Readlink(proc + "/cwd")
			return at
		}
		at, _ := os.Readlink(fmt.Sprintf("%s/fd/%d", proc, int32(n.args[arg])))
		return at
	}
	if c.path == none {
		return folder(c.dir)
	}
	path := textOf(proc, n.args[c.path])
	if rest, is := strings.CutPrefix(path, "/proc/self/fd/"); is {
		fd, below, _ := strings.Cut(rest, "/")
		at, _ := os.Readlink(proc + "/fd/" + fd)
		return filepath.Join(at, below)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(folder(c.dir), path)
}

// textOf returns the text at an address of a process.
func textOf(proc string, address uint64) string {
	memory, err := os.Open(proc + "/mem")
	if err != nil {
		return ""
	}
	defer memory.Close()
	b := make([]byte, unix.PathMax)
	n, _ := memory.ReadAt(b, int64(address)) // it may end within a page that is there
	text, _, _ := bytes.Cut(b[:n], []byte{0})
	return string(text)
}
