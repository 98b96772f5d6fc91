package managed

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// programFile writes the program of an architecture.
func programFile(t *testing.T, arch string) string {
	t.Helper()
	b, err := pauseProgram(arch)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestThePauseProgramIsAFewBytesThatAKernelLoads(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		b, err := pauseProgram(arch)
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		p := f.Progs[0]
		if f.Machine != machine || f.Type != elf.ET_EXEC || len(b) > 300 || p.Filesz != uint64(len(b)) || f.Entry != p.Vaddr+120 || p.Flags != elf.PF_R|elf.PF_X {
			t.Errorf("%s: %d bytes, %+v, %+v", arch, len(b), f.FileHeader, p.ProgHeader)
		}
	}
}

func TestNoPauseProgramForOtherMachines(t *testing.T) {
	if _, err := pauseProgram("riscv64"); err == nil || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("%v", err)
	}
}

// runners run the program of an architecture as an ordinary process.
func runners(t *testing.T) map[string][]string {
	all := map[string][]string{runtime.GOARCH: nil}
	if emulator, err := exec.LookPath("qemu-aarch64"); err == nil {
		all["arm64"] = []string{emulator}
	}
	return all
}

func TestThePauseProgramEndsWellBySignals(t *testing.T) {
	for arch, runner := range runners(t) {
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			argv := append(runner, programFile(t, arch))
			cmd := exec.Command(argv[0], argv[1:]...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			awaitWaits(t, cmd.Process.Pid)
			if err := errors.Join(cmd.Process.Signal(syscall.SIGCONT), cmd.Process.Signal(s), cmd.Wait()); err != nil {
				t.Errorf("%s, %v: %v", arch, s, err)
			}
		}
	}
}

// ignores reports whether a process ignores a signal, by its status file; it may ignore more that
// the process before it did, as below nohup.
func ignores(status string, s syscall.Signal) bool {
	_, rest, _ := strings.Cut(status, "\nSigIgn:\t")
	mask, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseUint(mask, 16, 64)
	return err == nil && n>>(s-1)&1 == 1
}

// awaitWaits waits until a process ignores SIGCHLD and sleeps: it waits for signals.
func awaitWaits(t *testing.T, pid int) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			t.Fatal(err)
		}
		if ignores(string(b), syscall.SIGCHLD) && strings.Contains(string(b), "State:\tS") {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("it does not wait for signals:\n%s", b)
		}
	}
}

// As a first process of a namespace it gets the signals, too, and no child that ended stays.
func TestThePauseProgramAsFirstProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	// The shell leaves a child behind, then becomes the program.
	sh := exec.Command("/bin/sh", "-c", "sleep 0.01 & exec "+programFile(t, runtime.GOARCH))
	sh.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	pid := sh.Process.Pid
	awaitWaits(t, pid)
	for late := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children")
		if err == nil && len(bytes.TrimSpace(b)) == 0 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("children stay: %s, %v", b, err)
		}
	}
	if err := errors.Join(sh.Process.Signal(syscall.SIGTERM), sh.Wait()); err != nil {
		t.Error(err)
	}
}
