//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// served is a pod that serves 100 MB and a small file, and keeps what it is sent.
const served = `
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: registry.test/busybox:1
    ports: [{name: http, containerPort: 7000}]
    command:
    - sh
    - -c
    - |
      mkdir /www && cd /www
      head -c 104857600 /dev/urandom > big; head -c 1048576 /dev/urandom > small
      sha256sum big small > sums
      httpd -p 7000 -h /www
      exec nc -ll -p 7001 -e sh -c 'cat > /www/sent'
    readinessProbe: {httpGet: {path: /sums, port: 7000}, periodSeconds: 1}
`

// forwarder is a `monopod port-forward` that runs.
type forwarder struct {
	w     *world
	cmd   *exec.Cmd
	lines *bufio.Scanner
	ports []string // of this machine
}

// forward starts one and waits until it listens.
func (w *world) forward(ports int, args ...string) *forwarder {
	w.Helper()
	f := &forwarder{w: w, cmd: w.command(w.Context(), "port-forward", append(args, "--address", "127.0.0.1")...)}
	out, err := f.cmd.StdoutPipe()
	check(w.T, err)
	f.cmd.Stderr = f.cmd.Stdout
	check(w.T, f.cmd.Start())
	f.lines = bufio.NewScanner(out)
	for range ports {
		var from string
		var remote int
		if line := f.line(); len(f.ports) < ports {
			if _, err := fmt.Sscanf(line, "Forwarding from %s -> %d", &from, &remote); err != nil {
				w.Fatalf("port-forward says %q: %v", line, err)
			}
			_, port, err := net.SplitHostPort(from)
			check(w.T, err)
			f.ports = append(f.ports, port)
		}
	}
	return f
}

func (f *forwarder) line() string {
	f.w.Helper()
	if !f.lines.Scan() {
		f.w.Fatalf("port-forward ended: %v", f.cmd.Wait())
	}
	return f.lines.Text()
}

// quiets reads on, so that it is never kept from what it says; told gets each line.
func (f *forwarder) quiets(told func(line string)) {
	go func() {
		for f.lines.Scan() {
			told(f.lines.Text())
		}
	}()
}

// sum gets a file of the pod, and returns its checksum.
func (f *forwarder) sum(file string) (string, error) {
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://127.0.0.1:" + f.ports[0] + "/" + file)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	h := sha256.New()
	_, err = io.Copy(h, resp.Body)
	return fmt.Sprintf("%x  %s\n", h.Sum(nil), file), err
}

func forwardsPorts(w *world) {
	w.start()
	w.write("web", served)
	w.running("web")
	w.exits(0, "", "ready", "", "wait", "web", "--timeout", "60s")
	sums, err := w.command(w.Context(), "exec", "web", "--", "cat", "/www/sums").Output()
	check(w.T, err)
	f := w.forward(2, "web", ":http", ":7001")
	f.quiets(func(string) {})

	big, err := f.sum("big")
	check(w.T, err)
	if !strings.Contains(string(sums), big) {
		w.Errorf("100 MB came as %s, want one of\n%s", big, sums)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if small, err := f.sum("small"); err != nil || !strings.Contains(string(sums), small) {
				w.Errorf("one of 50 at once: %s, %v", small, err)
			}
		})
	}
	all.Wait()

	conn, err := net.Dial("tcp", "127.0.0.1:"+f.ports[1])
	check(w.T, err)
	sent := make([]byte, 20<<20)
	_, err = rand.Read(sent)
	check(w.T, err)
	_, err = conn.Write(sent)
	check(w.T, errors.Join(err, conn.(*net.TCPConn).CloseWrite()))
	_, err = io.ReadAll(conn)
	check(w.T, errors.Join(err, conn.Close()))
	w.until("all that was sent has come", func() error {
		out, err := w.command(w.Context(), "exec", "web", "--", "sha256sum", "/www/sent").Output()
		if want := fmt.Sprintf("%x", sha256.Sum256(sent)); err == nil && !strings.HasPrefix(string(out), want) {
			err = fmt.Errorf("the checksum is %s, want %s", out, want)
		}
		return err
	})
	check(w.T, f.cmd.Process.Signal(syscall.SIGINT))
	if err := f.cmd.Wait(); err != nil {
		w.Errorf("after Ctrl-C: %v", err)
	}
	w.forwardsOn(string(sums))
	w.exits(1, "", "", `there is no pod "wob"`, "port-forward", "wob", "80")
}

// forwardsOn replaces the pod, stops the agent, and looks who notices.
func (w *world) forwardsOn(sums string) {
	w.Helper()
	lost, follows := w.forward(1, "web", ":7000"), w.forward(1, "web", ":7000", "--follow")
	said := make(chan string, 1000)
	follows.quiets(func(line string) { said <- line })
	w.exits(0, "", "is restarted\n", "", "restart", "web", "--timeout", "60s")
	for strings.HasPrefix(lost.line(), "Handling") {
	}
	if err := lost.cmd.Wait(); lost.cmd.ProcessState.ExitCode() != 1 {
		w.Errorf("without --follow: %v, want exit code 1", err)
	}
	for line := ""; !strings.HasSuffix(line, "there again") && !strings.HasSuffix(line, "connections go to the new one"); {
		line = <-said
	}
	w.exits(0, "", "ready", "", "wait", "web", "--timeout", "60s")
	if next, err := follows.sum("sums"); err != nil || strings.Contains(sums, next) {
		w.Errorf("of the new pod: %s, %v", next, err)
	}
	check(w.T, w.agent.Stop())
	if _, err := follows.sum("small"); err != nil {
		w.Errorf("while the agent is down: %v", err)
	}
	down := w.forward(1, "web", ":7000")
	down.quiets(func(string) {})
	if _, err := down.sum("small"); err != nil {
		w.Errorf("started while the agent is down: %v", err)
	}
	for _, f := range []*forwarder{follows, down} {
		check(w.T, f.cmd.Process.Signal(syscall.SIGTERM))
		if _ = f.cmd.Wait(); f.cmd.ProcessState.ExitCode() != 143 {
			w.Errorf("after SIGTERM it ends with %d", f.cmd.ProcessState.ExitCode())
		}
	}
	w.start()
}

// attachesToContainers types into a shell that runs in a container already.
func attachesToContainers(w *world) {
	w.start()
	w.write("shell", `
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sh], stdin: true, tty: true}
  - {name: in, image: "registry.test/busybox:1", stdin: true, command: [sh, -c, "while read line; do echo heard $line; done"]}
  - {name: out, image: "registry.test/busybox:1", command: [sh, -c, "while true; do echo tick; sleep 0.2; done"]}
`)
	w.running("shell")
	w.exits(0, "", "ready", "", "wait", "shell", "--timeout", "30s")
	w.exits(1, "", "", "has no standard input: its manifest lacks stdin: true", "attach", "-i", "shell", "-c", "out")

	ptmx, tty, err := openTerminal()
	check(w.T, err)
	defer ptmx.Close()
	defer tty.Close()
	check(w.T, unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 99}))
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	check(w.T, err)
	var shown screen
	go io.Copy(&shown, ptmx)
	attach := func() *exec.Cmd {
		cmd := w.command(w.Context(), "attach", "-it", "shell")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		check(w.T, cmd.Start())
		return cmd
	}
	shows := func(line, text string) {
		w.Helper()
		w.until("the terminal shows "+text, func() error {
			io.WriteString(ptmx, line)
			if s := shown.String(); !strings.Contains(s, text) {
				return fmt.Errorf("it shows %q", s)
			}
			return nil
		})
	}
	restored := func() {
		w.Helper()
		if after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || *after != *before {
			w.Errorf("the terminal is left as %+v, was %+v; %v", after, before, err)
		}
	}
	cmd := attach()
	shows("stty size\n", "33 99")
	check(w.T, unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 44, Col: 111}))
	shows("stty size\n", "44 111")
	shows("\x03echo is''here\n", "ishere") // Ctrl-C reaches the shell, which takes it
	check(w.T, cmd.Process.Signal(syscall.SIGTERM))
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 143 {
		w.Errorf("after SIGTERM: exit code %d", cmd.ProcessState.ExitCode())
	}
	restored()
	cmd = attach() // the same shell still
	shows("echo is''still $$\n", "isstill 1\r\n")
	check(w.T, cmd.Process.Kill()) // the terminal is left as it was set, the shell runs on
	_ = cmd.Wait()
	check(w.T, unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, before))
	cmd = attach()
	shows("echo after''kill $$\n", "afterkill 1\r\n")
	// Ctrl-D ends the shell, and so the container.
	if err := w.typesUntil(cmd, ptmx, "\x04"); err != nil {
		w.Errorf("after the end of the container: %v", err)
	}
	shows("", "Session ended, resume using 'monopod attach shell -c main -i -t' command when the pod is running")
	restored()

	check(w.T, w.agent.Stop())
	cmd = w.command(w.Context(), "attach", "-qi", "shell/in")
	in, err := cmd.StdinPipe()
	check(w.T, err)
	out, err := cmd.StdoutPipe()
	check(w.T, err)
	check(w.T, cmd.Start())
	io.WriteString(in, "a word\n")
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "heard a word\n" {
		w.Errorf("while the agent is down it says %q, %v", line, err)
	}
	check(w.T, cmd.Process.Signal(syscall.SIGINT))
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		w.Errorf("after Ctrl-C: exit code %d", cmd.ProcessState.ExitCode())
	}
	w.start()
}

// copiesFiles copies a tree of 10,000 files in and out, with what is odd.
func copiesFiles(w *world) {
	w.start()
	w.write("web", sleeper)
	w.running("web")
	w.exits(0, "", "ready", "", "wait", "web", "--timeout", "30s")
	from, to := w.T.TempDir(), w.T.TempDir()
	for k := range 100 {
		dir := filepath.Join(from, fmt.Sprintf("folder %d", k))
		check(w.T, os.Mkdir(dir, 0o755))
		for n := range 100 {
			check(w.T, os.WriteFile(filepath.Join(dir, fmt.Sprintf("-file\n%d \xff", n)), []byte(fmt.Sprint(k, n)), 0o640))
		}
		check(w.T, os.Symlink("../folder 0/-file\n0 \xff", filepath.Join(dir, "link")))
	}
	check(w.T, errors.Join(os.WriteFile(from+"/one", []byte("x"), 0o600), os.Link(from+"/one", from+"/two")))
	check(w.T, errors.Join(os.WriteFile(from+"/holes", []byte("x"), 0o600), os.Truncate(from+"/holes", 200<<20)))
	w.exits(0, "", "", "", "cp", from, "web:/tree")
	w.exits(0, "", "10003\n", "", "exec", "web", "--", "sh", "-c", `find /tree -type f -print0 | tr -dc '\0' | wc -c`)
	w.exits(0, "", "", "", "cp", "web:/tree", to+"/out")
	if out, err := exec.Command("diff", "-r", "--no-dereference", from, to+"/out").CombinedOutput(); err != nil {
		w.Errorf("what came back differs: %v\n%.2000s", err, out)
	}
	var one, two, holes unix.Stat_t
	check(w.T, errors.Join(unix.Stat(to+"/out/one", &one), unix.Stat(to+"/out/two", &two), unix.Stat(to+"/out/holes", &holes)))
	if one.Ino != two.Ino || holes.Blocks*512 > 1<<20 || holes.Size != 200<<20 {
		w.Errorf("one and two are files %d and %d; the file with holes has %d bytes and takes %d", one.Ino, two.Ino, holes.Size, holes.Blocks*512)
	}

	w.exits(0, "", "", "", "exec", "web", "--", "sh", "-c", `mkdir /evil; cd /evil; ln -s /etc out; ln -s ../../.. up; ln -s in good; echo x > in; mkfifo pipe; printf '#' > "$(printf 'a\033[31m')"; chmod 4755 in`)
	w.exits(0, "", "", "left out: up: a link that leads out", "cp", "web:/evil/", to+"/evil")
	left := map[string]bool{}
	check(w.T, filepath.WalkDir(to+"/evil", func(file string, d fs.DirEntry, err error) error {
		left[d.Name()] = true
		return err
	}))
	i, err := os.Stat(to + "/evil/in")
	check(w.T, err)
	if !left["good"] || !left["a\x1b[31m"] || left["out"] || left["up"] || left["pipe"] || i.Mode()&fs.ModeSetuid != 0 {
		w.Errorf("of what is hostile there came %v; in has the mode %s", left, i.Mode())
	}
	w.liesThroughTar(to)
	check(w.T, w.agent.Stop())
	w.exits(0, "", "", "", "cp", "web:/etc/version", to)
	if text, err := os.ReadFile(to + "/version"); string(text) != "1\n" {
		w.Errorf("while the agent is down: %q, %v", text, err)
	}
	w.exits(1, "", "", "ended with exit code 1", "cp", "web:/nosuch", to)
	w.exits(2, "", "", "one of the two must be a file of a pod", "cp", "a", "b")
	w.exits(0, "", "", "", "exec", "web", "--", "rm", "/bin/tar")
	w.exits(1, "", "", "container main of pod "+w.ns+"/web has no tar, by which files are copied", "cp", "web:/etc/version", to)
	w.start()
}

// liesThroughTar puts a program in the place of tar that sends names of files elsewhere.
func (w *world) liesThroughTar(to string) {
	w.Helper()
	evil := w.T.TempDir()
	check(w.T, errors.Join(os.Mkdir(evil+"/x", 0o755), os.WriteFile(evil+"/outside", []byte("evil"), 0o644), os.Symlink("/tmp", evil+"/x/l")))
	archive, err := exec.Command("tar", "-C", evil+"/x", "-cP", "--transform", "s,^,./x/,", "../outside").Output()
	check(w.T, err)
	cmd := w.command(w.Context(), "exec", "-i", "web", "--", "sh", "-c", "cat > /lie; printf '#!/bin/sh\\ncat /lie\\n' > /bin/lie; chmod 755 /bin/lie; mv /bin/tar /bin/true-tar; cp /bin/lie /bin/tar")
	cmd.Stdin = bytes.NewReader(archive)
	check(w.T, cmd.Run())
	w.exits(1, "", "", "a name in it leads out", "cp", "web:/x", to+"/x")
	if _, err := os.Stat(to + "/outside"); !errors.Is(err, fs.ErrNotExist) {
		w.Errorf("a file lies outside: %v", err)
	}
	w.exits(0, "", "", "", "exec", "web", "--", "mv", "/bin/true-tar", "/bin/tar")
}
