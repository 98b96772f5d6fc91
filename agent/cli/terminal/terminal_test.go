package terminal

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"monopod/agent/stream"
)

// conmon takes the first of two sizes that come at once for both.
func TestARedrawSendsAnotherSizeWellBeforeTheRealOne(t *testing.T) {
	sizes, stop := Sizes(terminalOf(t, 33, 99), true)
	defer stop()
	if first := <-sizes; first != (stream.Size{Width: 100, Height: 34}) {
		t.Errorf("the first size is %+v", first)
	}
	began := time.Now()
	if second := <-sizes; second != (stream.Size{Width: 99, Height: 33}) {
		t.Errorf("the second size is %+v", second)
	}
	if pause := time.Since(began); pause < redrawPause/2 {
		t.Errorf("it comes after %s", pause)
	}
}

// terminalOf opens a terminal of a size.
func terminalOf(t *testing.T, rows, columns uint16) *os.File {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: no terminals on this machine: %v", err)
	}
	t.Cleanup(func() { ptmx.Close() })
	number, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return tty
}
