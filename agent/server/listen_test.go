package server

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"monopod/agent/events"
)

func config(t *testing.T, listen, socket string) Config {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	return Config{Listen: listen, Socket: socket, Log: log, Events: events.Open(events.Config{Log: log})}
}

const notLoopback = ": others can reach this address: it needs tlsCertFile and tlsPrivateKeyFile, " +
	"and clientCAFile or tokenFile; or use 127.0.0.1"

func TestTCPIsLoopbackOnlyWithoutAccess(t *testing.T) {
	rows := []struct{ address, err string }{
		{"127.0.0.1:0", ""},
		{"127.9.9.9:0", ""},
		{"localhost:0", ""},
		{"[::1]:0", ""},
		{"[::ffff:127.0.0.1]:0", ""},
		{":0", notLoopback},
		{"0.0.0.0:0", notLoopback},
		{"[::]:0", notLoopback},
		{"192.0.2.1:0", notLoopback},
		{"127.0.0.1", ": not of the form host:port"},
		{"::1:10255", ": not of the form host:port"},
	}
	for _, r := range rows {
		t.Run(r.address, func(t *testing.T) {
			s, err := Listen(config(t, r.address, ""))
			if r.err != "" {
				if want := "listen on " + r.address + r.err; err == nil || err.Error() != want {
					t.Errorf("Listen = %v\nwant     %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if strings.Contains(r.address, "::1") && s.late != nil {
				t.Skip("no IPv6 here")
			}
			if !s.Addr().(*net.TCPAddr).IP.IsLoopback() {
				t.Errorf("listens on %s", s.Addr())
			}
		})
	}
}

func TestARefusedSocketReleasesTCP(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	if _, err := Listen(config(t, address, "/no/such/folder/s")); err == nil {
		t.Fatal("a socket in no folder")
	}
	s, err := Listen(config(t, address, ""))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// Pods can run without being asked about. Only root can make a disk.
func TestASocketOnAReadOnlyDiskIsDoneWithout(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("monopod-test", disk, "tmpfs", unix.MS_RDONLY, "size=64k"); err != nil {
		t.Skip("no disk can be mounted: ", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	var log strings.Builder
	c := config(t, "127.0.0.1:0", filepath.Join(disk, "socket"))
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Port() == 0 {
		t.Error("the TCP endpoint is not served")
	}
	if got := log.String(); strings.Count(got, "no command can reach this agent") != 1 || !strings.Contains(got, "--socket") {
		t.Errorf("it is said as %q", got)
	}
}
