package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A command blocks in a write whose output is not read. The first signal cancels it, which ends no
// write; the second one ends the process.
func TestTheSecondSignalEndsABlockedCommand(t *testing.T) {
	dir := t.TempDir()
	bin, files := filepath.Join(dir, "monopod"), filepath.Join(dir, "manifests")
	if out, err := exec.Command("go", "build", "-o", bin, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq("abcdefghijklmnop", "") {
		if err := os.WriteFile(filepath.Join(files, name+".yaml"), []byte(strings.Repeat(name, 200)+": 1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	full, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	defer output.Close()
	fill(t, output)
	cmd := exec.Command(bin, "validate", files)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	asks, limit := time.NewTicker(200*time.Millisecond), time.After(30*time.Second)
	defer asks.Stop()
	for {
		select {
		case err := <-ended:
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
				t.Errorf("ended with %v, want a kill by the signal", err)
			}
			return
		case <-asks.C:
			cmd.Process.Signal(os.Interrupt)
		case <-limit:
			cmd.Process.Kill()
			t.Fatal("signals do not end it")
		}
	}
}

// fill writes to a pipe until it is full.
func fill(t *testing.T, pipe *os.File) {
	if err := pipe.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := pipe.Write(make([]byte, 4096)); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			return
		}
	}
}

// A run that reads its manifests from a pipe, or looks through an archive, may wait for long.
func TestASignalEndsARunThatReadsItsManifests(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "monopod")
	if out, err := exec.Command("go", "build", "-o", bin, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for signal, want := range map[syscall.Signal]int{syscall.SIGHUP: 129, syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(signal.String(), func(t *testing.T) {
			pipe, report := filepath.Join(t.TempDir(), "job.yaml"), filepath.Join(t.TempDir(), "report.json")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			cmd := exec.Command(bin, "once", "--report", "json="+report, pipe)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			limit := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
			defer limit.Stop()
			if err := writer.SetWriteDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := writer.Write(make([]byte, 128<<10)); err != nil { // more than a pipe holds: the run reads
				t.Fatal(err)
			}
			for range 2 { // as timeout(1) does
				cmd.Process.Signal(signal)
			}
			cmd.Wait()
			text, err := os.ReadFile(report)
			if code := cmd.ProcessState.ExitCode(); code != want || err != nil || !strings.Contains(string(text), fmt.Sprintf(`"exitCode": %d`, want)) {
				t.Errorf("%v, want %d; reported (%v) %s", cmd.ProcessState, want, err, text)
			}
		})
	}
}
