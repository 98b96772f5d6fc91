package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"monopod/agent/e2e/rig"
	"monopod/agent/e2e/writelog"
)

// bootIn is how long a boot may take: 20 s without kvm on a machine with nothing else
// to do.
const bootIn = 4 * time.Minute

// machine is a Debian with systemd and cgroup v2 in an emulator, without a network.
// Its methods are for one goroutine.
type machine struct {
	hardware
	dir     string // of this machine
	kernel  string // folder of vmlinuz and initrd.img
	payload string // disk of what is tested, mounted at /payload
	accel   string
	served  *writelog.Disk // nil: the disk is its file
	words   string         // that scripts may use

	process *rig.Process
	shell   net.Conn
	lines   chan string // what the shell in the machine says
	sent    int         // scripts
}

// newMachine copies the disk in kernel, which the machine may change.
func newMachine(dir, kernel, payload, accel string, h hardware) (*machine, error) {
	m := &machine{hardware: h, dir: dir, kernel: kernel, payload: payload, accel: accel}
	cp := exec.Command("cp", "--sparse=always", "--reflink=auto", filepath.Join(kernel, "disk.img"), m.disk())
	if out, err := cp.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy the disk: %w: %s", err, out)
	}
	return m, nil
}

func (m *machine) disk() string       { return filepath.Join(m.dir, "disk.img") }
func (m *machine) diskSocket() string { return filepath.Join(m.dir, "disk.sock") }
func (m *machine) console() string    { return filepath.Join(m.dir, "console.log") }

// args is the emulator's command line. `-cpu max` stays whole: without svm the
// emulator (7.2) breaks readlink in the machine. What the machine wrote is in the file
// when the emulator is killed, whatever the cache, as the disk is raw: only what the
// machine itself had not written yet is lost, as with a power cut. On a busy machine the
// emulator's timer is late, for which the kernel would panic: no_timer_check. What the
// kernel does against faults of real processors only costs time: mitigations=off. After
// a panic it boots again at once.
func (m *machine) args(socket string) []string {
	clock := cmp.Or(m.clock, "utc")
	disk := "file=" + m.disk() + ",cache=unsafe"
	if m.served != nil {
		disk = "file=nbd:unix:" + m.diskSocket()
	}
	cpu := "max"
	if m.threads > 1 {
		cpu += ",vendor=GenuineIntel" // the emulator gives processors of AMD's no threads
	}
	return []string{"qemu-system-x86_64", "-accel", m.accel, "-cpu", cpu, "-rtc", "base=" + clock,
		"-m", fmt.Sprint(m.memory), "-smp", fmt.Sprintf("%d,sockets=1,threads=%d", m.cpus, max(m.threads, 1)),
		"-nodefaults", "-no-user-config", "-display", "none", "-serial", "file:" + m.console(),
		"-kernel", filepath.Join(m.kernel, "vmlinuz"), "-initrd", filepath.Join(m.kernel, "initrd.img"),
		"-append", "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=0 no_timer_check panic=-1 mitigations=off " +
			"modprobe.blacklist=kvm,kvm_amd,kvm_intel,ata_piix,ata_generic,aesni_intel,i2c_piix4,pcspkr,floppy",
		"-drive", disk + ",format=raw,if=virtio", "-drive", "file=" + m.payload + ",readonly=on,format=raw,if=virtio",
		"-device", "virtio-rng-pci", "-device", "virtio-serial",
		"-chardev", "socket,id=shell,server=on,wait=off,path=" + socket, "-device", "virtserialport,chardev=shell,name=trial"}
}

// boot starts the machine and waits for its shell.
func (m *machine) boot(ctx context.Context, limit time.Duration) error {
	socket := filepath.Join(m.dir, "shell.sock")
	_ = os.Remove(socket)
	var err error
	if m.process, err = rig.StartProcess(filepath.Join(m.dir, "qemu.log"), nil, m.args(socket)...); err != nil {
		return err
	}
	err = rig.Until(ctx, 30*time.Second, func() (err error) {
		select {
		case <-m.process.Done():
			return rig.Final(fmt.Errorf("the emulator ended: %w\n%s", m.process.Err(), rig.Tail(m.process.Log, 5)))
		default:
			m.shell, err = net.Dial("unix", socket)
			return err
		}
	})
	if err != nil {
		return err
	}
	m.lines = make(chan string, 16)
	go listen(m.shell, m.lines)
	return m.ready(ctx, limit)
}

func listen(from net.Conn, lines chan<- string) {
	defer close(lines)
	s := bufio.NewScanner(from)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		lines <- s.Text()
	}
}

var errEnded = errors.New("the machine ended")

// ready waits until the shell of a machine that boots says that it is there. One panic
// of its kernel is said and let pass.
func (m *machine) ready(ctx context.Context, limit time.Duration) error {
	before := len(m.panics())
	_, err := m.hear(ctx, limit, "ready")
	said := m.panics()
	if err == nil && len(said) > before+1 {
		err = errors.New("the kernel panicked more than once")
	}
	if err != nil {
		return fmt.Errorf("boot: %w; the end of its console:\n%s", err, rig.Tail(m.console(), 10))
	}
	if len(said) > before {
		fmt.Println("THE KERNEL PANICKED, so the machine booted once more:", said[before])
	}
	return nil
}

// panics returns what the kernel said of each since the emulator started.
func (m *machine) panics() []string {
	console, _ := os.ReadFile(m.console())
	return regexp.MustCompile(`\] Kernel panic.*`).FindAllString(string(console), -1)
}

// hear returns the rest of the next line that begins with a word.
func (m *machine) hear(ctx context.Context, limit time.Duration, word string) (string, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case line, ok := <-m.lines:
			if !ok {
				return "", errEnded
			}
			if first, rest, _ := strings.Cut(line, " "); first == word {
				return rest, nil
			}
		case <-late.C:
			return "", fmt.Errorf("no answer within %s", limit)
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// prelude begins each script: in bash "! command" would not end one, "no command" does.
const prelude = "set -eu\nno() { ! \"$@\"; }\n"

// send has the shell run a script, and returns the word that the answer begins with.
func (m *machine) send(script string) (string, error) {
	m.sent++
	id := fmt.Sprint(m.sent)
	text := base64.StdEncoding.EncodeToString([]byte(prelude + m.words + script))
	if _, err := fmt.Fprintf(m.shell, "%s %s\n", id, text); err != nil {
		return "", fmt.Errorf("send a script: %w", err)
	}
	return id, nil
}

// do runs a bash script in the machine and returns what it printed. An exit code
// other than 0 is an error with the output.
func (m *machine) do(ctx context.Context, limit time.Duration, script string) (string, error) {
	id, err := m.send(script)
	if err != nil {
		return "", err
	}
	answer, err := m.hear(ctx, limit, id)
	if err != nil {
		return "", fmt.Errorf("%s: %w", script, err)
	}
	code, text, _ := strings.Cut(answer, " ")
	out, err := base64.StdEncoding.DecodeString(text)
	said := strings.TrimSpace(string(out))
	if err == nil && code != "0" {
		err = fmt.Errorf("%s: exit code %s: %s", script, code, said)
	}
	return said, err
}

// reboot reboots the machine as its user does.
func (m *machine) reboot(ctx context.Context) error {
	if _, err := m.send("systemctl reboot"); err != nil {
		return err
	}
	return m.ready(ctx, bootIn+time.Minute)
}

// powerOff turns the machine off as its user does.
func (m *machine) powerOff(ctx context.Context) error {
	if _, err := m.send("systemctl poweroff"); err != nil {
		return err
	}
	late := time.NewTimer(bootIn)
	defer late.Stop()
	select {
	case <-m.process.Done():
		m.cut() // what is left of it here
		return nil
	case <-late.C:
		return fmt.Errorf("it is not off within %s", bootIn)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cut takes the power away.
func (m *machine) cut() {
	if m.process != nil {
		m.process.Kill()
		m.process = nil
	}
	if m.shell != nil {
		m.shell.Close()
		m.shell = nil
	}
}
