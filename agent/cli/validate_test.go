package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"monopod/agent/cli/command"
)

// oddFolder is a folder of a good manifest beside what is none: a pipe that
// no process writes to, a link to it, and a file that is larger than any disk.
func oddFolder(t *testing.T) string {
	dir := t.TempDir()
	for _, err := range []error{
		unix.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o644),
		os.Symlink("pipe.yaml", filepath.Join(dir, "link.yaml")),
		os.WriteFile(filepath.Join(dir, "sparse.yaml"), nil, 0o644),
		os.Truncate(filepath.Join(dir, "sparse.yaml"), 1<<40),
		os.WriteFile(filepath.Join(dir, "good.txt"), []byte(goodJob), 0o644),
		os.Symlink("good.txt", filepath.Join(dir, "good.yaml")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// said runs a command and returns what it prints, and its exit code.
func said(t *testing.T, ctx context.Context, in io.Reader, args ...string) (string, int) {
	t.Helper()
	var out, log bytes.Buffer
	err := execute(ctx, in, &out, &log, append(args, "--node-name", "n")...)
	if err != nil {
		log.WriteString(err.Error())
	}
	return out.String() + log.String(), command.ExitCode(err)
}

func TestWhatIsNoFileOfTextIsAProblemOfItsOwn(t *testing.T) {
	dir := oddFolder(t)
	for _, name := range []string{"validate", "once"} {
		text, code := said(t, t.Context(), nil, name, dir)
		text = strings.ReplaceAll(text, dir, "DIR")
		for _, want := range []string{
			"DIR/link.yaml: not a regular file", "DIR/pipe.yaml: not a regular file", "DIR/sparse.yaml: larger than 10 MiB", "3 problems",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing from:\n%s", name, want, text)
			}
		}
		if code != command.ExitUsage {
			t.Errorf("%s: code %d", name, code)
		}
	}
	if text, _ := said(t, t.Context(), nil, "validate", dir); !strings.Contains(text, "default/job-n") {
		t.Errorf("the good one is missing from:\n%s", text)
	}
}

func TestStandardInputIsBounded(t *testing.T) {
	for _, name := range []string{"validate", "once"} {
		in := strings.NewReader(strings.Repeat("#", 100<<20))
		text, code := said(t, t.Context(), in, name, "-")
		if code != command.ExitUsage || !strings.Contains(text, "larger than 10 MiB") {
			t.Errorf("%s: code %d, said %s", name, code, text)
		}
		if left := in.Len(); left < 80<<20 {
			t.Errorf("%s: all but %d bytes were read", name, left)
		}
	}
}

// As `validate <(helm template .)` has it.
func TestAPipeThatIsNamedIsRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.WriteString(goodJob)
		w.Close()
	}()
	text, code := said(t, t.Context(), nil, "validate", "/dev/fd/"+strconv.Itoa(int(r.Fd())))
	if code != 0 || !strings.Contains(text, "default/job-n") {
		t.Errorf("code %d, said %s", code, text)
	}
}

func TestValidateEndsWhileNothingIsWritten(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { w.Close(); r.Close() }()
	if text, code := said(t, ctx, r, "validate", "-"); code == 0 {
		t.Errorf("it said %s", text)
	}
}

func TestSettingsAreARegularFile(t *testing.T) {
	dir := oddFolder(t)
	for name, want := range map[string]string{"pipe.yaml": "not a regular file", "sparse.yaml": "larger than 10 MiB"} {
		text, code := said(t, t.Context(), nil, "validate", "--config", filepath.Join(dir, name), filepath.Join(dir, "good.yaml"))
		if code != command.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: code %d, said %s", name, code, text)
		}
	}
}

// The agent would run only one of them.
func TestValidateRefusesTheSecondPodOfAUID(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: u-1}\nspec: {containers: [{name: c, image: i}]}\n"
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	runTable(t, &b, "validate", "--node-name", "n", dir)
	said := b.String()
	for _, want := range []string{filepath.Join(dir, "b.yaml") + ":3:26: metadata.uid: ", "a.yaml gives the pod default/a-n with the uid u-1 already", "[2]\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	b.Reset()
	if runTable(t, &b, "validate", "--node-name", "n", filepath.Join(dir, "a.yaml")); strings.Contains(b.String(), "[2]") {
		t.Errorf("one alone is refused:\n%s", b.String())
	}
}

// Files that are checked together give each other their claims.
func TestValidateKnowsTheClaimsOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	pod, claim := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	for path, text := range map[string]string{
		pod:   "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}\n",
		claim: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, code := said(t, t.Context(), nil, "validate", pod); code != 2 || !strings.Contains(text, "no file gives the PersistentVolumeClaim data") {
		t.Errorf("alone: exit code %d: %s", code, text)
	}
	if text, code := said(t, t.Context(), nil, "validate", dir); code != 0 {
		t.Errorf("together: exit code %d: %s", code, text)
	}
}

// What has no effect here is a note, and no reason to look again.
func TestNotesAreCountedBesideWarnings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.yaml")
	text := "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\n" + goodJob
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, code := said(t, t.Context(), nil, "validate", path)
	if code != 0 || !strings.Contains(got, path+":2:7: note: kind: Service is skipped") || !strings.HasSuffix(got, "no problems, 1 note\n") {
		t.Errorf("exit code %d of:\n%s", code, got)
	}
}

// A file of Secrets that others may read is warned of, as the agent does; what comes by a pipe has
// no such mode.
func TestValidateSaysWhoMayReadSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {k: v}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ok := "ok   " + path + "   ConfigMap default/m\nok   " + path + "   Secret default/key\n1 file, no pods, no problems"
	if got, code := said(t, t.Context(), nil, "validate", path); code != 0 || got != ok+"\n" {
		t.Errorf("one that is its owner's: %d of\n%s", code, got)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	want := path + ":5:1: warning: holds a Secret, and other users may read it (mode 0640): chmod go-r " + path + "\n" + ok + ", 1 warning\n"
	if got, code := said(t, t.Context(), nil, "validate", path); code != 0 || got != want {
		t.Errorf("one that others may read: %d of\n%s\nwant\n%s", code, got, want)
	}
	if got, code := said(t, t.Context(), strings.NewReader(text), "validate", "-"); code != 0 || strings.Contains(got, "warning") {
		t.Errorf("from standard input: %d of\n%s", code, got)
	}
}

// Folders in a folder are not read, which one note says.
func TestValidateSaysWhichFoldersAreNotRead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"old", "apps", ".git", "lost+found"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(goodJob), 0o644); err != nil {
		t.Fatal(err)
	}
	got, code := said(t, t.Context(), nil, "validate", dir)
	note, rest, _ := strings.Cut(got, "\n")
	want := dir + ": note: apps/, old/: not read, as by a kubelet: manifests stand in the folder itself"
	if code != 0 || note != want || !strings.HasSuffix(rest, "1 file, 1 pod, no problems, 1 note\n") {
		t.Errorf("exit code %d of:\n%s\nwant\n%s", code, got, want)
	}
}
