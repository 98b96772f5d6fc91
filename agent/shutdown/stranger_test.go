package shutdown

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// stranger is a user of the bus who says that the machine goes down.
type stranger struct {
	*testing.T
	conn *dbus.Conn
}

func startStranger(b *bus) stranger {
	b.Helper()
	c, err := b.connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return stranger{b.T, c}
}

// says sends the signal to all who listen for it, and to one connection alone, which no
// match rule keeps away. When it returns the bus has passed both on.
func (s stranger) says(to string, body ...any) {
	s.Helper()
	if err := s.conn.Emit(loginPath, loginManager+"."+prepare, body...); err != nil {
		s.Fatal(err)
	}
	s.sends(to, loginPath, loginManager, prepare, body...)
	if err := s.conn.BusObject().Call(busName+".GetId", 0).Err; err != nil {
		s.Fatal(err)
	}
}

// sends sends a signal to one connection.
func (s stranger) sends(to string, path dbus.ObjectPath, iface, member string, body ...any) {
	s.Helper()
	m := &dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: dbus.MakeVariant(to), dbus.FieldPath: dbus.MakeVariant(path),
		dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...))}}
	if s.conn.Send(m, nil) == nil {
		s.Fatal("the connection has ended")
	}
}

// toldNothing waits until the inhibitor has taken in all that was sent to it: logind's own
// signal comes behind, and is what it asks for.
func (i *inhibits) toldNothing(t *testing.T, l *logind) {
	t.Helper()
	before := l.questions.Load()
	l.signal(false)
	until(t, "a question to logind", func() bool {
		select {
		case down := <-i.orders:
			t.Fatalf("told that the machine goes down: %t", down)
		default:
		}
		return l.questions.Load() > before
	})
}

func TestAStrangerStopsNoPods(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	startStranger(b).says(i.name, true)
	i.toldNothing(t, l)
	l.prepare(true)
	i.ordered(t, true)
	startStranger(b).says(i.name, false)
	i.toldNothing(t, l)
	l.prepare(false)
	i.ordered(t, false)
}

// Who may not own logind's name may not say either that it has another owner.
func TestAStrangerIsNotTakenForLogind(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	s := startStranger(b)
	s.sends(i.name, "/org/freedesktop/DBus", busName, ownerChanged, loginName, l.conn.Names()[0], s.conn.Names()[0])
	s.says(i.name, true)
	i.toldNothing(t, l)
	if n := len(l.asked); n != 1 {
		t.Errorf("%d locks were asked for", n)
	}
}

// A signal of logind's that its property does not bear out changes nothing.
func TestTheSignalIsNotBelieved(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	l.signal(true)
	i.toldNothing(t, l)
	l.props.SetMust(loginManager, "PreparingForShutdown", true)
	l.signal(false)
	i.ordered(t, true)
}

func TestAFloodOfSignalsCostsLittle(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	l.prepare(true) // the sync loop takes no order for a while
	until(t, "the question", func() bool { return l.questions.Load() > 2 })
	before, questions, s := runtime.NumGoroutine(), l.questions.Load(), startStranger(b)
	for range 1000 {
		s.sends(i.name, loginPath, loginManager, prepare, strings.Repeat("x", 10_000))
		l.signal(true)
	}
	s.says(i.name, true)
	if now := runtime.NumGoroutine(); now > before+100 {
		t.Errorf("%d goroutines were %d before the flood", now, before)
	}
	i.ordered(t, true)
	began := time.Now()
	for range 1000 {
		l.signal(true)
	}
	l.prepare(false)
	i.ordered(t, false)
	if n, most := l.questions.Load()-questions, 4+int64(time.Since(began)/askEvery); n > most {
		t.Errorf("logind was asked %d times, at most %d are right", n, most)
	}
}

// A logind that is started again may not know the lock, and is asked what it is about.
func TestALogindThatIsStartedAgainIsFollowed(t *testing.T) {
	b := startBus(t)
	l := startLogind(b, time.Minute)
	i := inhibit(b, 20*time.Second)
	until(t, "lock", func() bool { return l.held() == 1 })
	if err := l.conn.Close(); err != nil {
		t.Fatal(err)
	}
	again := startLogind(b, time.Minute)
	until(t, "another lock", func() bool { return again.held() == 1 })
	until(t, "the end of the first", func() bool { return l.held() == 0 })
	again.prepare(true)
	i.ordered(t, true)
	if said := i.said(); said != "" {
		t.Errorf("said %s", said)
	}
}
