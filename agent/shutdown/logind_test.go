package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
)

// bus is a D-Bus daemon of the test's own.
type bus struct {
	*testing.T
	address string
	dropIn  string
	daemon  *exec.Cmd
}

func startBus(t *testing.T) *bus {
	b := &bus{T: t, address: "unix:path=" + filepath.Join(t.TempDir(), "bus"), dropIn: filepath.Join(t.TempDir(), "logind.conf.d", "99-monopod.conf")}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *bus) start() {
	b.Helper()
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		b.Fatalf("%v: install it, `apt-get install dbus-daemon`", err)
	}
	_ = os.Remove(strings.TrimPrefix(b.address, "unix:path="))
	b.daemon = exec.Command(program, "--session", "--nofork", "--nopidfile", "--address="+b.address, "--print-address")
	out, err := b.daemon.StdoutPipe()
	if err == nil {
		err = b.daemon.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 256)); n == 0 { // it listens once it says where
		b.Fatalf("the bus does not start: %v", err)
	}
}

func (b *bus) stop() {
	_ = b.daemon.Process.Kill()
	_ = b.daemon.Wait()
}

func (b *bus) connect(ctx context.Context, options ...dbus.ConnOption) (*dbus.Conn, error) {
	return dbus.Connect(b.address, append(options, dbus.WithContext(ctx))...)
}

// logind is the part of logind, and of systemd, that an inhibitor uses.
type logind struct {
	*testing.T
	conn  *dbus.Conn
	props *prop.Properties
	grant func() uint64 // the delay after a reload, in microseconds; nil: as it is

	questions atomic.Int64 // for its properties

	mu    sync.Mutex
	locks []*os.File // the ends that logind keeps
	asked []string
}

// count counts the questions for properties.
func (l *logind) count(m *dbus.Message) {
	if m.Type == dbus.TypeMethodCall && m.Headers[dbus.FieldMember].Value() == "Get" {
		l.questions.Add(1)
	}
}

func startLogind(b *bus, delay time.Duration) *logind {
	b.Helper()
	l := &logind{T: b.T}
	conn, err := b.connect(b.Context(), dbus.WithIncomingInterceptor(l.count))
	l.conn = conn
	if err == nil {
		b.Cleanup(func() { conn.Close() })
		err = errors.Join(conn.Export(l, loginPath, loginManager), conn.Export(systemd{l}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"))
	}
	if err == nil {
		l.props, err = prop.Export(conn, loginPath, prop.Map{loginManager: {
			"InhibitDelayMaxUSec": {Value: uint64(delay.Microseconds())}, "PreparingForShutdown": {Value: false}}})
	}
	for _, name := range []string{loginName, "org.freedesktop.systemd1"} {
		if err == nil {
			_, err = conn.RequestName(name, 0)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// Inhibit gives a lock away, as logind does: unless the machine goes down already.
func (l *logind) Inhibit(what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.props.GetMust(loginManager, "PreparingForShutdown").(bool) {
		return 0, dbus.NewError("org.freedesktop.login1.OperationInProgress", nil)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.locks, l.asked = append(l.locks, ours), append(l.asked, strings.Join([]string{what, who, mode}, " "))
	fd := theirs.Fd()
	time.AfterFunc(time.Second, func() { theirs.Close() }) // it is sent by then
	return dbus.UnixFD(fd), nil
}

type systemd struct{ *logind }

func (s systemd) KillUnit(unit, who string, signal int32) *dbus.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked = append(s.asked, fmt.Sprint(unit, " ", who, " ", signal)); s.grant != nil {
		s.props.SetMust(loginManager, "InhibitDelayMaxUSec", s.grant())
	}
	return nil
}

// prepare tells that the machine goes down, or does not after all.
func (l *logind) prepare(down bool) {
	l.Helper()
	l.props.SetMust(loginManager, "PreparingForShutdown", down)
	l.signal(down)
}

// signal sends the signal alone.
func (l *logind) signal(down bool) {
	l.Helper()
	if err := l.conn.Emit(loginPath, loginManager+".PrepareForShutdown", down); err != nil {
		l.Fatal(err)
	}
}

// held returns how many locks are held.
func (l *logind) held() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.locks {
		_ = f.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := f.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			n++
		}
	}
	return n
}

// inhibits runs an inhibitor on the bus.
type inhibits struct {
	*Inhibitor
	orders chan bool
	done   chan struct{}
	mu     sync.Mutex
	events []string
	times  []Times // as shown
	name   string  // on the bus
}

func inhibit(b *bus, needs time.Duration) *inhibits {
	i := notRun(b, needs)
	i.run(b)
	return i
}

// notRun returns an inhibitor that does not run yet.
func notRun(b *bus, needs time.Duration) *inhibits {
	i := &inhibits{orders: make(chan bool), done: make(chan struct{}, 1)}
	i.Inhibitor = &Inhibitor{Needs: needs, Orders: i.orders, Done: i.done, Connect: i.named(b.connect), DropIn: b.dropIn,
		Log: slog.New(slog.DiscardHandler), Event: func(reason, message string) {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.events = append(i.events, reason+": "+message)
		}}
	i.Record = &Record{Path: filepath.Join(b.TempDir(), TimesFile), Shown: func(start, end time.Time) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.times = append(i.times, Times{start, end})
	}}
	return i
}

func (i *inhibits) run(b *bus) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { i.Run(ctx) })
	b.Cleanup(func() { cancel(); all.Wait() })
}

// named remembers the name of each connection.
func (i *inhibits) named(connect Connect) Connect {
	return func(ctx context.Context, options ...dbus.ConnOption) (*dbus.Conn, error) {
		c, err := connect(ctx, options...)
		if err == nil {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.name = c.Names()[0]
		}
		return c, err
	}
}

func (i *inhibits) said() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.Join(i.events, "\n")
}

// until waits for something that happens soon.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20s", what)
		}
		select { // the daemon is another process: nothing tells
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

func (i *inhibits) ordered(t *testing.T, want bool) {
	t.Helper()
	select {
	case got := <-i.orders:
		if got != want {
			t.Fatalf("told that the machine goes down: %t", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("told nothing within 20s")
	}
}

func TestTheMachineWaitsUntilPodsHaveStopped(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	l.prepare(true)
	i.ordered(t, true)
	if n := l.held(); n != 1 {
		t.Errorf("%d locks are held while pods stop", n)
	}
	i.done <- struct{}{}
	until(t, "release", func() bool { return l.held() == 0 })
	if want := "shutdown monopod delay"; len(l.asked) != 1 || l.asked[0] != want {
		t.Errorf("asked for %q, want %q", l.asked, want)
	}
	if _, err := os.Stat(i.DropIn); !os.IsNotExist(err) {
		t.Errorf("logind, which waits for long enough, is told to wait: %v", err)
	}
}

// The times are on the disk before the machine goes on, and known to the next agent.
func TestTheTimesOfAShutdownAreKept(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	began := time.Now()
	l.prepare(true)
	i.ordered(t, true)
	i.done <- struct{}{}
	until(t, "release", func() bool { return l.held() == 0 })
	i.mu.Lock()
	shown := slices.Clone(i.times)
	i.mu.Unlock()
	if len(shown) != 3 || shown[0] != (Times{}) || shown[1].Start.Before(began) || !shown[1].End.IsZero() {
		t.Fatalf("shown are %v, want none, a start and an end", shown)
	}
	last := shown[2]
	if !last.Start.Equal(shown[1].Start) || last.End.Before(last.Start) {
		t.Errorf("the shutdown ended as %v", last)
	}
	var next Times
	r := &Record{Path: i.Record.Path, Shown: func(start, end time.Time) { next = Times{start, end} }}
	if err := r.load(); err != nil || !next.Start.Equal(last.Start) || !next.End.Equal(last.End) {
		t.Errorf("the next agent knows %v, %v; want %v", next, err, last)
	}
	if err := os.WriteFile(r.Path, make([]byte, 20), 0o600); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	(&Inhibitor{Record: r, Log: i.Log, Event: i.Event}).Run(over)
	if said := i.said(); !strings.HasPrefix(said, "StateFileDamaged: ") || r.load() != nil {
		t.Errorf("of a damaged file it is said %q; then %v", said, r.load())
	}
}

func TestTheLockIsTakenAgainAfterACancellation(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	for range 2 {
		l.prepare(true)
		i.ordered(t, true)
		i.done <- struct{}{}
		until(t, "release", func() bool { return l.held() == 0 })
		l.prepare(false)
		i.ordered(t, false)
		until(t, "another lock", func() bool { return l.held() == 1 })
	}
}

func TestLogindIsToldToWaitForLonger(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, 5*time.Second)
	l.grant = func() uint64 {
		var seconds uint64
		text, _ := os.ReadFile(b.dropIn)
		_, values, _ := strings.Cut(string(text), "[Login]\nInhibitDelayMaxSec=")
		_, _ = fmt.Sscan(values, &seconds)
		return seconds * 1e6
	}
	i := inhibit(b, 20500*time.Millisecond)
	until(t, "lock", func() bool { return l.held() == 1 })
	if got := l.props.GetMust(loginManager, "InhibitDelayMaxUSec"); got != uint64(21e6) {
		t.Errorf("logind waits for %d microseconds", got)
	}
	if want := fmt.Sprintf("systemd-logind.service all %d", syscall.SIGHUP); l.asked[0] != want || i.said() != "" {
		t.Errorf("asked %q, want %q first; said %s", l.asked, want, i.said())
	}
}

// InhibitDelayMaxSec=infinity is the largest number on the bus.
func TestALogindThatWaitsForeverIsLeftAlone(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	l.props.SetMust(loginManager, "InhibitDelayMaxUSec", uint64(math.MaxUint64))
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	if _, err := os.Stat(i.DropIn); !os.IsNotExist(err) || i.said() != "" {
		t.Errorf("it is told to wait for less (%v); said %q", err, i.said())
	}
}

func TestALogindThatDoesNotWaitForLongerIsTold(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, 5*time.Second)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	if want := "ShortInhibitDelay: logind waits for 5s only, pods have 20s: "; !strings.HasPrefix(i.said(), want) {
		t.Errorf("said %q, want %q", i.said(), want)
	}
}

func TestTheLockIsTakenAgainWhenTheBusIsBack(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	b.stop()
	until(t, "trouble", func() bool { return strings.HasPrefix(i.said(), "FailedInhibit: ") })
	if n := l.held(); n != 1 {
		t.Errorf("%d locks are held without a bus", n)
	}
	b.start()
	again := startLogind(b, time.Minute)
	until(t, "another lock", func() bool { return again.held() == 1 })
	until(t, "the end of the first", func() bool { return l.held() == 0 })
	again.prepare(true)
	i.ordered(t, true)
}

// An agent that starts while the machine waits for others stops its pods, too.
func TestAShutdownThatHasBegunIsNoticed(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	l.props.SetMust(loginManager, "PreparingForShutdown", true)
	i := inhibit(b, 20*time.Second)
	i.ordered(t, true)
	l.prepare(false)
	i.ordered(t, false)
	until(t, "lock", func() bool { return l.held() == 1 })
}

// The sync loop is told before it starts anything, and later of what comes of it.
func TestAnAgentThatStartsInAShutdownKnowsItAtOnce(t *testing.T) {
	b := startBus(t)
	asks := func() bool { return notRun(b, 20*time.Second).AskFirst(t.Context()) }
	if asks() {
		t.Error("the machine goes down without logind")
	}
	l := startLogind(b, time.Minute)
	if asks() {
		t.Error("the machine goes down already")
	}
	l.props.SetMust(loginManager, "PreparingForShutdown", true)
	i := notRun(b, 20*time.Second)
	if !i.AskFirst(t.Context()) || len(l.asked) > 0 {
		t.Errorf("nothing is known, or logind is asked for %q", l.asked)
	}
	l.props.SetMust(loginManager, "PreparingForShutdown", false) // before Run follows it
	i.run(b)
	i.ordered(t, false)
	until(t, "lock", func() bool { return l.held() == 1 })
	b.stop()
	if asks() {
		t.Error("the machine goes down without a bus")
	}
}

// A cancellation that came while the bus was away is noticed.
func TestACancellationWithoutABusIsNoticed(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	l.prepare(true)
	i.ordered(t, true)
	b.stop()
	b.start()
	again := startLogind(b, time.Minute)
	i.ordered(t, false)
	until(t, "another lock", func() bool { return again.held() == 1 })
}
