//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// command is `monopod NAME`, with the flags that all commands here need.
func (w *world) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	flags := []string{name, "--socket", w.agent.Socket}
	if slices.Contains([]string{"exec", "attach", "port-forward", "cp", "ps"}, name) {
		flags = append(flags, "--root", w.agent.Root, "--runtime-endpoint", w.agent.Endpoint)
	}
	return w.agent.Command(ctx, append(flags, args...)...)
}

// exits runs a command and checks its exit code and what it writes; an output
// that is not "" must be contained.
func (w *world) exits(code int, in, out, errs, name string, args ...string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	cmd := w.command(ctx, name, args...)
	cmd.Stdin = strings.NewReader(in)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(stdout.String(), out) || !strings.Contains(stderr.String(), errs) || errs == "" && stderr.Len() > 0 {
		w.Errorf("%s %q: exit code %d, want %d\nout %q, want %q\nerr %q, want %q", name, args, got, code, stdout.String(), out, stderr.String(), errs)
	}
}

// runsCommandsInContainers shows streams, exit codes and terminals of exec, with
// and without the agent.
func runsCommandsInContainers(w *world) {
	w.agent.Settings += "evictionHard: {nodefs.available: 0%, imagefs.available: 0%}\n" // ps tells of a full disk, which another one may be
	w.start()
	w.write("web", sleeper)
	w.running("web")
	w.exits(0, "", "ready", "", "wait", "web", "--timeout", "30s")
	sh := func(script string) []string { return []string{"web", "--", "sh", "-c", script} }
	w.exits(0, "", "to out\n", "to err\n", "exec", sh("echo to out; echo to err >&2")...)
	w.exits(7, "", "", "", "exec", sh("exit 7")...)
	w.exits(0, "no input", "0\n", "", "exec", sh("wc -c")...)
	w.exits(0, strings.Repeat("x", 300_000), "300000\n", "", "exec", append([]string{"-i"}, sh("wc -c")...)...)
	switch {
	case w.rig.Runtime.RefusesCommands():
		w.exits(127, "", "", `container main of pod runscommandsincontainers/web: cannot run "nosuch"`, "exec", "web", "--", "nosuch")
		w.exits(126, "", "", "cannot run", "exec", "web", "--", "/etc")
	case w.rig.Runtime.UsesCrun(): // what it writes and returns counts as the command's
		w.exits(1, "", "", "executable file `nosuch` not found in $PATH", "exec", "web", "--", "nosuch")
		w.exits(1, "", "", "the path `/etc` is not a regular file", "exec", "web", "--", "/etc")
	default:
		w.exits(255, "", "", "exec failed", "exec", "web", "--", "nosuch")
		w.exits(255, "", "", "exec failed", "exec", "web", "--", "/etc")
	}
	w.exits(1, "", "", `there is no pod "wob"`, "exec", "wob", "--", "true")
	w.exits(2, "", "", "the command goes behind --", "exec", "web", "true")

	out, err := w.command(w.Context(), "exec", sh("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")...).Output()
	if check(w.T, err); bytes.Count(out, []byte("\n")) != 20000 || !bytes.HasSuffix(out, []byte("line 19999\n")) {
		w.Errorf("of 20000 lines %d came", bytes.Count(out, []byte("\n")))
	}
	head := exec.CommandContext(w.Context(), "sh", "-c", `("$@"; echo ended with $? >&2) | head -1`, "sh")
	head.Args = append(head.Args, w.command(w.Context(), "exec", "web", "--", "yes").Args...)
	if out, err := head.CombinedOutput(); err != nil || string(out) != "y\nended with 141\n" {
		w.Errorf("a closed output: %q, %v", out, err)
	}
	w.interrupted()
	w.terminal()

	check(w.T, w.agent.Stop())
	w.exits(3, "", "web", "monopod: the agent does not run", "ps")
	w.exits(0, "", "hello\n", "", "exec", "web", "--", "echo", "hello")
	w.start()
	w.exits(0, "", "web", "", "ps", "web")
}

// interrupted ends an exec by SIGTERM.
func (w *world) interrupted() {
	w.Helper()
	cmd := w.command(w.Context(), "exec", "web", "--", "sh", "-c", "echo started; sleep 30")
	out, err := cmd.StdoutPipe()
	check(w.T, err)
	check(w.T, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len("started\n")))
	check(w.T, err)
	check(w.T, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 143 {
		w.Errorf("after SIGTERM: %v, want exit code 143", err)
	}
}

// terminal types into an exec with a terminal, changes its size, and looks
// whether it is left as it was.
func (w *world) terminal() {
	w.Helper()
	ptmx, tty, err := openTerminal()
	check(w.T, err)
	defer ptmx.Close()
	defer tty.Close()
	check(w.T, unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 99}))
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	check(w.T, err)
	var shown screen
	go io.Copy(&shown, ptmx)
	cmd := w.command(w.Context(), "exec", "-it", "web", "--", "sh")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	check(w.T, cmd.Start())
	shows := func(text string) {
		w.Helper()
		w.until("the terminal shows "+text, func() error {
			if s := shown.String(); !strings.Contains(s, text) {
				return fmt.Errorf("it shows %q", s)
			}
			return nil
		})
	}
	w.until("the command's terminal has this one's size", func() error {
		io.WriteString(ptmx, "stty size\n")
		time.Sleep(200 * time.Millisecond) // for the shell to answer, before it is asked again
		if s := shown.String(); !strings.Contains(s, "33 99") {
			return fmt.Errorf("it shows %q", s)
		}
		return nil
	})
	check(w.T, unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 44, Col: 111}))
	w.until("it follows a change", func() error {
		io.WriteString(ptmx, "stty size\n")
		time.Sleep(200 * time.Millisecond)
		if s := shown.String(); !strings.Contains(s, "44 111") {
			return fmt.Errorf("it shows %q", s)
		}
		return nil
	})
	io.WriteString(ptmx, "sh -c 'echo as''leep; sleep 1000'\n")
	shows("asleep")
	// Ctrl-C ends the sleep and not monopod.
	if err := w.typesUntil(cmd, ptmx, "\x03exit 5\n"); cmd.ProcessState.ExitCode() != 5 {
		w.Errorf("%v, want exit code 5; the terminal shows %q", err, shown.String())
	}
	if after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || *after != *before {
		w.Errorf("the terminal is left as %+v, was %+v; %v", after, before, err)
	}
}

// typesUntil types until a command has ended, and returns how it did. What is typed while a shell
// takes its terminal over from a command that has ended may be lost.
func (w *world) typesUntil(cmd *exec.Cmd, ptmx io.Writer, text string) error {
	w.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	w.until(fmt.Sprintf("%s ends when %q is typed", cmd.Args[1], text), func() error {
		select {
		case err = <-ended:
			return nil
		default:
			io.WriteString(ptmx, text)
			return errors.New("it runs")
		}
	})
	return err
}

// screen is what a terminal shows.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// openTerminal makes a terminal and what stands behind it.
func openTerminal() (ptmx, tty *os.File, err error) {
	if ptmx, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		return nil, nil, err
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	return ptmx, tty, err
}

// restartsWhenAsked restarts a container, then its pod, and is killed meanwhile.
func restartsWhenAsked(w *world) {
	w.start()
	w.write("web", sleeper)
	first := w.running("web")["web"]
	w.exits(0, "", "container main of pod "+w.ns+"/web is restarted\n", "", "restart", "web/main", "--timeout", "30s")
	second := w.successor("web", 1)
	if second.Sandbox != first.Sandbox {
		w.Errorf("a container's restart made sandbox %s, was %s", second.Sandbox, first.Sandbox)
	}
	w.exits(0, "", "pod "+w.ns+"/web is restarted\n", "", "restart", "web", "--timeout", "30s")
	third := w.successor("web", 2)
	if third.Sandbox == second.Sandbox {
		w.Error("a pod's restart made no new sandbox")
	}
	w.exits(0, "", "is being restarted\n", "", "restart", "web", "--no-wait")
	w.kill()
	w.start()
	if fourth := w.successor("web", 3); fourth.Sandbox == third.Sandbox {
		w.Error("the restart did not go on after a kill")
	}
	w.exits(1, "", "", `there is no pod "nosuch"`, "restart", "nosuch")
	w.exits(124, "", "", "not succeeded within 1s: "+w.ns+"/web: Running", "wait", "web", "--for", "succeeded", "--timeout", "1s")
}
