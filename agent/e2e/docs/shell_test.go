//go:build e2e

package docs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"monopod/agent/e2e/rig"
)

// shell is one bash, whose output is a terminal of 200 columns. Its methods are for one goroutine.
type shell struct {
	typed string // the file with the command
	stdin io.Writer
	ended chan struct{}

	mu     sync.Mutex
	screen bytes.Buffer
}

// newShell starts a shell in dir, which ends with the test.
func newShell(t *testing.T, dir string) *shell {
	t.Helper()
	s := &shell{typed: filepath.Join(t.TempDir(), "typed"), ended: make(chan struct{})}
	master, slave, err := openTerminal()
	check(t, err)
	defer slave.Close()
	cmd := exec.Command("bash", "--norc", "--noprofile")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, slave, slave
	cmd.Env = append(offlineGo(t), "HOME=/root", "TERM=dumb", "LANG=C.UTF-8", "PATH="+standins+":"+os.Getenv("PATH"))
	s.stdin, err = cmd.StdinPipe()
	check(t, err)
	check(t, cmd.Start())
	go s.read(master)
	return s
}

// offlineGo has go take modules from what this machine has fetched, where their sums were checked.
func offlineGo(t *testing.T) []string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	check(t, err)
	return []string{"GOSUMDB=off", "GOPROXY=file://" + strings.TrimSpace(string(cache)) + "/cache/download"}
}

// openTerminal returns both ends of a terminal.
func openTerminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200}); err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	return master, slave, err
}

// read keeps what the terminal shows, until the shell has ended.
func (s *shell) read(master *os.File) {
	defer close(s.ended)
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		s.mu.Lock()
		s.screen.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// patience is how long one command may take.
const patience = 3 * time.Minute

// over is what the shell prints behind a command.
var over = regexp.MustCompile(`\n?<over: ([0-9]+)>\n$`)

// types runs a command, which keeps variables and the folder for those after it, and returns what
// the terminal shows and the exit code. With isStrict the first line that fails ends it.
func (s *shell) types(t *testing.T, command string, isStrict bool) (shown string, code int) {
	t.Helper()
	if isStrict {
		command = "set -eo pipefail\n" + command + "\nset +eo pipefail\n"
	}
	check(t, os.WriteFile(s.typed, []byte(command), 0o600))
	s.mu.Lock()
	s.screen.Reset()
	s.mu.Unlock()
	fmt.Fprintf(s.stdin, ". %s </dev/null; printf '\\n<over: %%d>\\n' $?\n", s.typed)
	err := rig.Until(t.Context(), patience, func() error {
		shown = s.shows()
		m := over.FindStringSubmatch(shown)
		if m == nil {
			return s.goesOn(shown)
		}
		code, _ = strconv.Atoi(m[1])
		shown = over.ReplaceAllString(shown, "")
		return nil
	})
	if err != nil {
		t.Fatalf("%v\nthe screen shows\n%s", err, shown)
	}
	return shown, code
}

// shows returns what the terminal has shown of the command.
func (s *shell) shows() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(s.screen.String(), "\r\n", "\n")
}

// goesOn returns that the command has not ended, which no waiting cures if the shell has.
func (s *shell) goesOn(shown string) error {
	select {
	case <-s.ended:
		return rig.Final(fmt.Errorf("the shell has ended: a line has failed:\n%s", shown))
	default:
		return fmt.Errorf("the command has not ended")
	}
}
