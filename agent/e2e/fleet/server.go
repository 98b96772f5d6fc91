package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// counts is what the server did since it was last asked.
type counts struct {
	Requests, Unmodified, Bytes int64
	Most                        int64 // requests in one second
	CPU                         time.Duration
}

// counter counts what passes a server. Its mutex guards all below it.
type counter struct {
	mu     sync.Mutex
	now    counts
	second int64 // of the clock
	in     int64 // requests in it
	cpu    time.Duration
}

func (c *counter) request(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now().Unix(); now != c.second {
		c.second, c.in = now, 0
	}
	c.in++
	c.now.Requests++
	c.now.Most = max(c.now.Most, c.in)
	if status == http.StatusNotModified {
		c.now.Unmodified++
	}
}

func (c *counter) bytes(n int) {
	c.mu.Lock()
	c.now.Bytes += int64(n)
	c.mu.Unlock()
}

// take returns the counts and starts again.
func (c *counter) take() counts {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.now
	out.CPU = cpu - c.cpu
	c.now, c.in, c.cpu = counts{}, 0, cpu
	return out
}

// listener counts the bytes of its connections.
type listener struct {
	net.Listener
	c *counter
}

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return connection{conn, l.c}, err
}

type connection struct {
	net.Conn
	c *counter
}

func (c connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.c.bytes(n)
	return n, err
}

func (c connection) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.c.bytes(n)
	return n, err
}

// answer notes the status of an answer.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// serveFiles serves a folder. It prints its URL, and its counts for each line that it reads.
func serveFiles(ctx context.Context, dir string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c, files := &counter{}, http.FileServer(http.Dir(dir))
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{w, http.StatusOK}
		files.ServeHTTP(a, r)
		c.request(a.status)
	})}
	go srv.Serve(listener{l, c})
	defer srv.Close()
	fmt.Println("http://" + l.Addr().String())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan() && ctx.Err() == nil; {
		if err := json.NewEncoder(os.Stdout).Encode(c.take()); err != nil {
			return err
		}
	}
	return nil
}

// server is a process of serveFiles. It ends when its input does.
type server struct {
	url  string
	cmd  *exec.Cmd
	to   io.WriteCloser
	from *bufio.Reader
}

func startServer(ctx context.Context, dir string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.CommandContext(ctx, self, "-serve", dir)}
	s.cmd.Stderr = os.Stderr
	if s.to, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.from = bufio.NewReader(out)
	url, err := s.from.ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("the server says no address: %w", err)
	}
	s.url = strings.TrimSpace(url)
	return s, nil
}

// counts returns what the server did since the last call.
func (s *server) counts() (c counts, err error) {
	if _, err := fmt.Fprintln(s.to); err != nil {
		return c, fmt.Errorf("ask the server: %w", err)
	}
	line, err := s.from.ReadBytes('\n')
	if err != nil {
		return c, fmt.Errorf("ask the server: %w", err)
	}
	return c, json.Unmarshal(line, &c)
}

func (s *server) stop() {
	s.to.Close()
	s.cmd.Wait()
}
