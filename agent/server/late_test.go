package server

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Any user of the machine may take the port while the agent is down. The socket is served,
// and TCP once the port is free.
func TestATakenPortIsDoneWithoutUntilItIsFree(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	told := make(chan error, 10)
	w := serve(t, func(c *Config) { c.Listen, c.NoTCP = address, func(err error) { told <- err } })
	if why := <-told; why == nil || why.Error() != "listen on "+address+": address in use: is another monopod or a kubelet running?" {
		t.Errorf("it is told as %v", why)
	}
	if w.Addr() != nil || w.Port() != 0 {
		t.Errorf("it says that it serves %v", w.Addr())
	}
	r, err := w.local.Get("http://x/version")
	if err != nil {
		t.Fatal("the socket is not served: ", err)
	}
	r.Body.Close()
	taken.Close()
	select {
	case why := <-told:
		if why != nil {
			t.Errorf("then it is told %v", why)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the address is not tried again")
	}
	if code, _, _ := w.ask(t, false, "GET", "/version"); code != http.StatusOK || w.Port() == 0 {
		t.Errorf("TCP answers %d, port %d", code, w.Port())
	}
}

// Nor does an address that no interface has yet keep the agent from starting.
func TestAnAddressThatIsNotThereYetIsDoneWithout(t *testing.T) {
	c := config(t, "192.0.2.1:0", "")
	g := &guard{}
	s := &Server{config: c.filled()}
	_, err := listenTCP(c.Listen, Access{Cert: "c", Key: "k", Tokens: "t"})
	var busy *busyError
	if !errors.As(err, &busy) || !strings.Contains(err.Error(), "the machine does not have this address") {
		t.Errorf("it is %v", err)
	}
	if err := s.bind(g); errors.As(err, &busy) {
		t.Error("an address that others can reach needs no access")
	}
}

// An agent that ends while its port is taken waits for nothing.
func TestAServerWithoutItsPortEnds(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w := serve(t, func(c *Config) { c.Listen = taken.Addr().String() })
	if err := w.stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
}

// Nor does a name that no resolver knows yet, as at a boot without a network. What it turns out to be
// is checked once it is known.
func TestANameThatHasNoAddressYetIsDoneWithout(t *testing.T) {
	s, err := Listen(config(t, "no-such-name.invalid:0", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.late == nil || s.late.why.Error() != "listen on no-such-name.invalid:0: the name no-such-name.invalid has no address" {
		t.Errorf("late is %+v", s.late)
	}
}
