// Package terminal is what a terminal gives a command: keys, sizes, signals.
package terminal

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"monopod/agent/stream"
)

// Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal syscall.Signal }

func (i *Interrupted) Error() string { return fmt.Sprintf("ended by the signal %s", i.Signal) }

// ExitCode is a shell's for a program that a signal ended.
func (i *Interrupted) ExitCode() int { return 128 + int(i.Signal) }

// EndSignals returns the signals that end a command: SIGINT, SIGTERM, and SIGHUP unless it is ignored,
// as by nohup(1): then the command outlives its terminal.
func EndSignals() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if signal.Ignored(syscall.SIGHUP) {
		return all
	}
	return append(all, syscall.SIGHUP)
}

// repetitions is how long the same signal may come again: timeout(1) sends each to its child and to
// its group.
const repetitions = 50 * time.Millisecond

// UntilSignal returns a context that ends with the first of EndSignals, with an *Interrupted as its
// cause; a second one that is no repetition of it ends the process.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	came, all := make(chan os.Signal, 1), EndSignals()
	signal.Notify(came, all...)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case s := <-came:
			cancel(&Interrupted{s.(syscall.Signal)})
			time.Sleep(repetitions)
			signal.Reset(all...)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		waiting.Wait()
		signal.Stop(came)
	}
}

// Raw makes the terminal pass on each key as it is typed, until restore is called, which may be
// more than once.
func Raw(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("terminal %s: %w", f.Name(), err)
	}
	var once sync.Once
	return func() { once.Do(func() { term.Restore(fd, before) }) }, nil
}

// Is reports whether f is a terminal.
func Is(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// redrawPause is between the two sizes of a redraw: of two that reach it at once conmon
// 2.1.6, which has the terminals of CRI-O's containers, takes the first one twice
// (src/ctrl.c, read_from_ctrl_buffer; newer ones do not).
const redrawPause = 100 * time.Millisecond

// Sizes sends the terminal's size now and whenever it changes, until stop is called. With redraw
// it sends another size first, so that a program that has the size already sees a change.
func Sizes(f *os.File, redraw bool) (sizes <-chan stream.Size, stop func()) {
	changed := make(chan os.Signal, 1)
	out, ended := make(chan stream.Size), make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	var sending sync.WaitGroup
	sending.Go(func() {
		for more := 0; ; more = 0 {
			if redraw {
				more, redraw = 1, false
			}
			if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
				select {
				case out <- stream.Size{Width: uint16(width + more), Height: uint16(height + more)}:
				case <-ended:
					return
				}
			}
			var after <-chan time.Time
			if more > 0 {
				after = time.After(redrawPause)
			}
			select {
			case <-changed:
			case <-after:
			case <-ended:
				return
			}
		}
	})
	return out, func() {
		signal.Stop(changed)
		close(ended)
		sending.Wait()
	}
}
