package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestPortsAreReadAsKubectlReadsThem(t *testing.T) {
	named := func(name string) (uint16, error) {
		if name != "http" {
			return 0, fmt.Errorf("there is no port %q", name)
		}
		return 8080, nil
	}
	for text, want := range map[string]Port{
		"80": {80, 80}, "8080:80": {8080, 80}, ":80": {0, 80}, "0:80": {0, 80}, "http": {8080, 8080}, "9:http": {9, 8080}, ":http": {0, 8080},
	} {
		if p, err := ParsePort(text, named); p != want || err != nil {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	for text, want := range map[string]string{
		"":        `"" is no port: want [LOCAL:]REMOTE, such as 8080:80, 80 or :80`,
		"80:":     `"80:" is no port: want [LOCAL:]REMOTE, such as 8080:80, 80 or :80`,
		"1:2:3":   `"1:2:3" is no port: want [LOCAL:]REMOTE, such as 8080:80, 80 or :80`,
		"70000":   `"70000" is no port: want [LOCAL:]REMOTE, such as 8080:80, 80 or :80`,
		"-1":      `"-1" is no port: want [LOCAL:]REMOTE, such as 8080:80, 80 or :80`,
		"8080:0":  `"8080:0": the pod's port must be more than 0`,
		"x:80":    `"x:80": "x" is no port of this machine: want a number up to 65535`,
		"9:https": `there is no port "https"`,
	} {
		if _, err := ParsePort(text, named); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAddressesAreIPsAndLocalhost(t *testing.T) {
	all, err := addressesOf([]string{"localhost,127.0.0.1", "192.0.2.1", "fd00::1"})
	if want := "[{tcp4 127.0.0.1 true} {tcp6 ::1 true} {tcp4 192.0.2.1 false} {tcp6 fd00::1 false}]"; err != nil || fmt.Sprint(all) != want {
		t.Errorf("%v, %v", all, err)
	}
	for _, wrong := range []string{"", "example.com", "127.0.0.1:80"} {
		if CheckAddresses([]string{wrong}) == nil {
			t.Errorf("%q is an address", wrong)
		}
	}
}

// world is a pod that is replaced now and then, and what is said of it.
type world struct {
	mu      sync.Mutex
	sandbox string // "": the pod has none
	said    strings.Builder
	asked   []string
	lines   chan string
}

func (w *world) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.said.Write(b)
	w.mu.Unlock()
	w.lines <- strings.TrimSuffix(string(b), "\n")
	return len(b), nil
}

func (w *world) becomes(sandbox string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sandbox = sandbox
}

func (w *world) options(follow bool) Options {
	return Options{Subject: "pod default/web", Ports: []Port{{0, 80}}, Addresses: []string{"127.0.0.1"}, Follow: follow, Out: w, Err: w, every: time.Hour,
		Find: func(context.Context) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.sandbox == "" {
				return "", errors.New("it does\nnot run")
			}
			return w.sandbox, nil
		},
		Runs: func(_ context.Context, id string) (bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.sandbox == id, nil
		},
		URL: func(_ context.Context, id string, port uint16) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked = append(w.asked, fmt.Sprintf("%s:%d", id, port))
			if w.sandbox != id {
				return "", fmt.Errorf("no sandbox %s", id)
			}
			return "", errors.New("asked")
		},
	}
}

// runs starts a Run, and returns the port that it listens on and how it ends.
func runs(t *testing.T, ctx context.Context, w *world, follow bool) (port string, result <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, w.options(follow)) }()
	line := <-w.lines
	var from string
	if _, err := fmt.Sscanf(line, "Forwarding from %s -> 80", &from); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	_, port, err := net.SplitHostPort(from)
	if err != nil {
		t.Fatal(err)
	}
	return port, done
}

// connects makes a connection, which the world resets.
func connects(t *testing.T, port string) {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err == nil {
		defer conn.Close()
		_, err = io.ReadAll(conn)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
}

func (w *world) says(t *testing.T, want string) {
	t.Helper()
	if got := <-w.lines; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestWithoutFollowAPodThatIsReplacedIsLost(t *testing.T) {
	w := &world{sandbox: "one", lines: make(chan string, 20)}
	port, result := runs(t, t.Context(), w, false)
	connects(t, port)
	w.says(t, "Handling connection for "+port)
	w.says(t, "monopod: an error occurred forwarding "+port+" -> 80: asked")
	w.becomes("two")
	connects(t, port)
	if err := <-result; err != ErrLost {
		t.Errorf("%v", err)
	}
	if _, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
		t.Error("it listens still")
	}
}

func TestWithFollowTheSuccessorIsFoundAtTheNextConnection(t *testing.T) {
	w := &world{sandbox: "one", lines: make(chan string, 20)}
	ctx, cancel := context.WithCancelCause(t.Context())
	port, result := runs(t, ctx, w, true)
	w.becomes("two")
	connects(t, port)
	w.says(t, "Handling connection for "+port)
	w.says(t, "monopod: pod default/web was replaced: connections go to the new one")
	w.says(t, "monopod: an error occurred forwarding "+port+" -> 80: asked")
	w.becomes("")
	for range 2 {
		connects(t, port)
	}
	w.says(t, "Handling connection for "+port)
	w.says(t, "monopod: pod default/web is gone, and is waited for: it does not run")
	w.says(t, "monopod: an error occurred forwarding "+port+" -> 80: pod default/web is not there now")
	w.says(t, "Handling connection for "+port)
	w.says(t, "monopod: an error occurred forwarding "+port+" -> 80: pod default/web is not there now")
	w.becomes("three")
	connects(t, port)
	w.says(t, "Handling connection for "+port)
	w.says(t, "monopod: pod default/web is there again")
	w.says(t, "monopod: an error occurred forwarding "+port+" -> 80: asked")
	enough := errors.New("enough")
	cancel(enough)
	if err := <-result; !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	if got := strings.Join(w.asked, " "); got != "one:80 two:80 two:80 three:80" {
		t.Errorf("asked for %s", got)
	}
}

func TestAPodThatDoesNotRunIsNotListenedFor(t *testing.T) {
	w := &world{lines: make(chan string, 20)}
	if err := Run(t.Context(), w.options(true)); err == nil || err.Error() != "it does\nnot run" || w.said.Len() > 0 {
		t.Errorf("%v, %s", err, w.said.String())
	}
}

func TestAPortThatIsTakenLeavesTheOthers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := uint16(l.Addr().(*net.TCPAddr).Port)
	w := &world{sandbox: "one", lines: make(chan string, 20)}
	o := w.options(false)
	o.Ports = []Port{{taken, 80}, {0, 81}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	if line := <-w.lines; !strings.HasPrefix(line, fmt.Sprintf("monopod: unable to listen on port %d: listen tcp4 127.0.0.1:%d: bind: address already in use", taken, taken)) {
		t.Error(line)
	}
	if line := <-w.lines; !strings.HasSuffix(line, " -> 81") {
		t.Error(line)
	}
	cancel()
	<-done
	o.Ports = o.Ports[:1]
	if err := Run(t.Context(), o); err == nil || err.Error() != "unable to listen on any of the requested ports" {
		t.Errorf("%v", err)
	}
}

// Who connects to 127.0.0.1 then reaches another program.
func TestALocalhostThatIsHalfTakenIsTold(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	other, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", taken))
	if err != nil {
		t.Skip("NOT run: there is no IPv6 here, or its port is taken, too")
	}
	other.Close()
	w := &world{sandbox: "one", lines: make(chan string, 20)}
	o := w.options(false)
	o.Ports, o.Addresses = []Port{{uint16(taken), 80}}, []string{"localhost"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	w.says(t, fmt.Sprintf("monopod: unable to listen on port %d: listen tcp4 127.0.0.1:%[1]d: bind: address already in use", taken))
	w.says(t, fmt.Sprintf("Forwarding from [::1]:%d -> 80", taken))
	cancel()
	<-done
}

func TestConnectionsAreBounded(t *testing.T) {
	f := &forwarding{}
	for range maxConns {
		if !f.count(1) {
			t.Fatal("there is no room")
		}
	}
	if f.count(1) {
		t.Error("there is room for one more")
	}
	f.count(-1)
	if !f.count(1) {
		t.Error("there is no room after one has ended")
	}
}
