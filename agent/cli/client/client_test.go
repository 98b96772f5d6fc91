package client

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestASocketForRootOnlyIsSaid(t *testing.T) {
	err := unreachable("/run/monopod.sock", answerTimeout, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)})
	if want := "the socket /run/monopod.sock is for root only: permission denied"; err.Error() != want {
		t.Errorf("said %q, want %q", err, want)
	}
}

// One agent that never accepts, and one that stops in the middle of its answer.
func TestAnAgentThatHangsIsNotWaitedFor(t *testing.T) {
	const timeout = 100 * time.Millisecond
	silent := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	half := filepath.Join(t.TempDir(), "s")
	l, err = net.Listen("unix", half)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"items":`))
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	for _, socket := range []string{silent, half} {
		_, err = GetWithin(t.Context(), timeout, socket, "/pods")
		if want := "no answer from " + socket + " within 100ms: is the monopod there stuck?"; err == nil || err.Error() != want {
			t.Errorf("said %v, want %s", err, want)
		}
	}
}
