package agent

import (
	"net"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// events returns how many events of the node have the reason and the words.
func (k *keeper) events(reason, words string) (n int) {
	k.a.events.List("").Each(func(e *v1.Event) bool {
		if e.Reason == reason && strings.Contains(e.Message, words) {
			n += int(max(e.Count, 1))
		}
		return true
	})
	return n
}

// Pods run without the TCP address; that it is missing is said where people and programs look,
// and no longer once it is served.
func TestATCPAddressThatIsTakenIsSaidAndTriedAgain(t *testing.T) {
	k := newKeeper(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	noErr(t, err)
	k.cfg.Listen = taken.Addr().String()
	k.start()
	says := func() bool {
		for _, p := range k.a.Store().Manifests().Reports {
			if strings.Contains(p.Message, "the TCP address is not served, and is tried again: listen on "+k.cfg.Listen) {
				return true
			}
		}
		return false
	}
	k.until("it is said", says)
	if n := k.events("FailedListen", "listen on "+k.cfg.Listen+": address in use"); n != 1 {
		t.Errorf("%d events tell of it", n)
	}
	if !strings.Contains(k.log.String(), "TCP is not served") {
		t.Errorf("the log has\n%s", k.log)
	}
	noErr(t, taken.Close())
	k.until("it is not said any more", func() bool { return !says() })
	if n := k.events("Listening", ""); n != 1 {
		t.Errorf("%d events tell that it is served", n)
	}
}
