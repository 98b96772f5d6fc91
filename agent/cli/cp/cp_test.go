package cp

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"monopod/agent/stream"
)

func TestAPlaceIsOfAPodOrOfThisMachine(t *testing.T) {
	for text, want := range map[string]Place{
		"web:/a":         {"web", "/a"},
		"web:a:b":        {"web", "a:b"},
		"default/web:a":  {"default/web", "a"},
		"web/app:/a":     {"web/app", "/a"},
		"a":              {"", "a"},
		"./a:b":          {"", "./a:b"},
		"/tmp/a:b":       {"", "/tmp/a:b"},
		"../a:b":         {"", "../a:b"},
		"web:../../etc/": {"web", "../../etc/"},
	} {
		if p, err := ParsePlace(text); p != want || err != nil {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
	for _, wrong := range []string{"", ":a", "web:"} {
		if p, err := ParsePlace(wrong); err == nil {
			t.Errorf("%q is %+v", wrong, p)
		}
	}
}

func TestAPathIsSplitForTar(t *testing.T) {
	for file, want := range map[string][2]string{
		"/a/b": {"/a/", "b"}, "/a": {"/", "a"}, "a": {".", "a"}, "/": {"/", "."}, "/a/": {"/a/", "."}, "..": {"..", "."}, "/a/..": {"/a/..", "."}, "-x": {".", "-x"},
	} {
		if dir, base := split(file); dir != want[0] || base != want[1] {
			t.Errorf("%s: %s and %s, want %s", file, dir, base, want)
		}
	}
}

// here is a container that is this machine, with the tar of this machine, or another.
func here(t *testing.T, as func(command []string) []string) *Copy {
	t.Helper()
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("no tar here")
	}
	return &Copy{Subject: "container main of pod default/web", Pod: "default/web/main", Notes: io.Discard,
		Exec: func(ctx context.Context, command []string, s stream.Streams) (int, error) {
			if as != nil {
				command = as(command)
			}
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Stdout, cmd.Stderr = s.Out, s.Err
			if s.In != nil {
				in, err := cmd.StdinPipe()
				if err != nil {
					return 0, err
				}
				go func() { io.Copy(in, s.In); in.Close() }()
			}
			err := cmd.Run()
			if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
				return ended.ExitCode(), nil
			}
			if errors.Is(err, exec.ErrNotFound) {
				err = &stream.StartError{Code: 127, Text: err.Error()}
			}
			return 0, err
		}}
}

// busybox has another tar do it, which knows no holes.
func busybox(t *testing.T) *Copy {
	t.Helper()
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("no busybox here")
	}
	return here(t, func(command []string) []string { return slices.Concat([]string{"busybox"}, command) })
}

// tars are the containers that copies are tried with.
func tars(t *testing.T, try func(t *testing.T, c *Copy)) {
	t.Run("GNU tar", func(t *testing.T) { try(t, here(t, nil)) })
	t.Run("busybox", func(t *testing.T) { try(t, busybox(t)) })
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// tree makes a folder with all that is odd.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir+"/plain", "plain")
	write(t, dir+"/-rf", "dash")
	write(t, dir+"/new\nline \x1b[31m", "odd")
	write(t, dir+"/not utf-8 \xff", "bytes")
	write(t, dir+"/"+strings.Repeat("long", 50)+"/"+strings.Repeat("deep", 50), "long")
	write(t, dir+"/sub/empty", "")
	write(t, dir+"/sub/run", "#!/bin/sh")
	if err := errors.Join(
		os.Chmod(dir+"/sub/run", 0o755),
		os.Link(dir+"/plain", dir+"/sub/plain too"),
		os.Symlink("plain", dir+"/link"),
		os.Symlink("../plain", dir+"/sub/up"),
		os.Mkdir(dir+"/no files", 0o755),
		os.Truncate(dir+"/sub/empty", 0),
	); err != nil {
		t.Fatal(err)
	}
	holes, err := os.Create(dir + "/holes")
	if err != nil {
		t.Fatal(err)
	}
	for k := range int64(40) { // more than one header tells of
		if _, err := holes.WriteAt([]byte(fmt.Sprintf("part %d", k)), k<<20+4096*(k%3)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(holes.Truncate(50<<20), holes.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// listed is each file below a folder with all that a copy keeps.
func listed(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	names := map[uint64]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		var s unix.Stat_t
		if err := unix.Lstat(file, &s); err != nil {
			return err
		}
		text := fmt.Sprintf("%q %o", strings.TrimPrefix(file, dir), s.Mode)
		switch s.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d bytes %x", len(data), bytes.TrimRight(data[:min(len(data), 20)], "\x00"))
			if s.Nlink > 1 && names[s.Ino] != "" {
				text += fmt.Sprintf(" is %q", names[s.Ino])
			}
			names[s.Ino] = strings.TrimPrefix(file, dir)
		case unix.S_IFLNK:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			text += " to " + target
		}
		all = append(all, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// onDisk is how many bytes a file takes.
func onDisk(t *testing.T, file string) int64 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(file, &s); err != nil {
		t.Fatal(err)
	}
	return s.Blocks * 512
}

func TestATreeIsCopiedOutAsItIs(t *testing.T) {
	tars(t, func(t *testing.T, c *Copy) {
		from, to := tree(t), t.TempDir()+"/there"
		if err := c.Down(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		if got, want := listed(t, to), listed(t, from); got != want {
			t.Errorf("the copy is\n%s\nwant\n%s", got, want)
		}
		if size := onDisk(t, to+"/holes"); size > 10<<20 {
			t.Errorf("the file with holes takes %d bytes", size)
		}
		if err := c.Down(t.Context(), from+"/", to); err != nil { // once more, over it
			t.Error(err)
		}
		if got, want := listed(t, to), listed(t, from); got != want {
			t.Errorf("copied over itself it is\n%s\nwant\n%s", got, want)
		}
	})
}

func TestATreeIsCopiedInAsItIs(t *testing.T) {
	tars(t, func(t *testing.T, c *Copy) {
		from, to := tree(t), t.TempDir()
		if err := c.Up(t.Context(), from, to+"/there"); err != nil {
			t.Fatal(err)
		}
		if got, want := listed(t, to+"/there"), listed(t, from); got != want {
			t.Errorf("the copy is\n%s\nwant\n%s", got, want)
		}
		if size := onDisk(t, to+"/there/holes"); t.Name() == "TestATreeIsCopiedInAsItIs/GNU_tar" && size > 10<<20 {
			t.Errorf("the file with holes takes %d bytes", size)
		}
		c.NoPreserve = true
		if err := c.Up(t.Context(), from+"/sub", to); err != nil { // into a folder that is there
			t.Fatal(err)
		}
		if got, want := listed(t, to+"/sub"), listed(t, from+"/sub"); got != want {
			t.Errorf("the copy is\n%s\nwant\n%s", got, want)
		}
	})
}

func TestAFileGoesToANameOrIntoAFolder(t *testing.T) {
	tars(t, func(t *testing.T, c *Copy) {
		from, to := t.TempDir(), t.TempDir()
		write(t, from+"/a", "first")
		write(t, from+"/-b", "second")
		os.Symlink("a", from+"/short")
		os.Symlink(from+"/short", from+"/far")
		os.Symlink("loop", from+"/loop")
		write(t, to+"/old", "what was there")
		os.Symlink("old", to+"/named")
		for _, step := range []struct{ copies, from, to, file, text string }{
			{"down", "/a", "/new", "/new", "first"},
			{"down", "/-b", "", "/-b", "second"},
			{"down", "/a", "/made/", "/made/a", "first"},
			{"down", "/short", "/through", "/through", "first"},
			{"down", "/far", "/far", "/far", "first"},
			{"down", "/a", "/named", "/old", "first"},
			{"up", "/-b", "/up", "/up", "second"},
			{"up", "/a", "/made", "/made/a", "first"},
			{"up", "/far", "/up too", "/up too", "first"},
		} {
			do := c.Down
			if step.copies == "up" {
				do = c.Up
			}
			if err := do(t.Context(), from+step.from, to+step.to); err != nil {
				t.Errorf("%s: %v", step, err)
			}
			if got, err := os.ReadFile(to + step.file); string(got) != step.text {
				t.Errorf("%s: %q, %v", step, got, err)
			}
		}
		for _, r := range []struct{ from, to, err string }{
			{from + "/nosuch", to + "/x", "tar in container main of pod default/web ended with exit code "},
			{from, to + "/old", to + "/old is not a folder, and a folder is copied"},
			{from + "/loop", to + "/x", "too many links lead from it to others"},
			{from + "/a", "/dev/null", "/dev/null is no file, and is not replaced"},
		} {
			if err := c.Down(t.Context(), r.from, r.to); err == nil || !strings.Contains(err.Error(), r.err) {
				t.Errorf("%s to %s: %v", r.from, r.to, err)
			}
		}
		if err := c.Up(t.Context(), from+"/nosuch", to); err == nil || err.Error() != from+"/nosuch doesn't exist on this machine" {
			t.Errorf("%v", err)
		}
		if err := c.Up(t.Context(), from+"/a", to+"/no/folder/"); err == nil || !strings.Contains(err.Error(), "ended with exit code") {
			t.Errorf("%v", err)
		}
	})
}

func TestWithoutTarThereIsASentence(t *testing.T) {
	c := here(t, func([]string) []string { return []string{"there is no such program"} })
	want := "container main of pod default/web has no tar, by which files are copied: `monopod exec default/web/main -- cat PATH` reads one, `monopod exec -i default/web/main -- tee PATH` writes one"
	for _, err := range []error{c.Down(t.Context(), "/a", t.TempDir()), c.Up(t.Context(), t.TempDir(), "/a")} {
		if err == nil || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
}

// CRI-O's exec ends with the code of the OCI runtime, whose words are where the command's
// would be.
func TestWithoutTarThereIsASentenceOnCRIO(t *testing.T) {
	for said, none := range map[string]bool{
		`time="2026-11-25T20:35:15Z" level=error msg="exec failed: unable to start container process: exec: \"tar\": executable file not found in $PATH"`: true,
		"executable file `tar` not found in $PATH: No such file or directory":                                                                             true,
		"tar: /a: no such file or directory": false,
	} {
		c := &Copy{Subject: "container main of pod default/web", Pod: "default/web/main", Exec: func(_ context.Context, _ []string, s stream.Streams) (int, error) {
			_, err := io.WriteString(s.Err, said)
			return 255, err
		}}
		if err := c.Down(t.Context(), "/a", t.TempDir()); err == nil || strings.Contains(err.Error(), "has no tar, by which files are copied") != none {
			t.Errorf("%s: %v", said, err)
		}
	}
}

// hostile is a container whose tar says what it likes.
func hostile(t *testing.T, all ...tar.Header) *Copy {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range all {
		text := h.Linkname
		if h.Typeflag == tar.TypeReg {
			h.Size, h.Linkname = int64(len(text)), ""
		}
		h.Mode = 0o6777
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			io.WriteString(w, text)
		}
	}
	w.Close()
	return &Copy{Subject: "container main", Pod: "web", Exec: func(_ context.Context, _ []string, s stream.Streams) (int, error) {
		_, err := s.Out.Write(archive.Bytes())
		return 0, err
	}}
}

// Whatever a container sends, nothing outside of the folder changes.
func TestAHostileContainerWritesNothingOutside(t *testing.T) {
	dir := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir} }
	file := func(name, text string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Linkname: text}
	}
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
	}
	hard := func(name, to string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: to}
	}
	for _, r := range []struct {
		name      string
		entries   []tar.Header
		err, left string // a part of each
	}{
		{"a name with ..", []tar.Header{dir("x"), file("x/../../evil", "e")}, "leads out", ""},
		{"an absolute name", []tar.Header{dir("x"), file("/evil", "e")}, "begins with /", ""},
		{"another name", []tar.Header{dir("x"), file("evil", "e")}, `not below "x"`, ""},
		{"only another name", []tar.Header{file("evil", "e")}, `not below "x"`, ""},
		{"a file in place of the folder", []tar.Header{dir("x"), file("x", "e")}, "more than was asked for", ""},
		{"two files", []tar.Header{file("x", "e"), file("x/evil", "e")}, "more than was asked for", ""},
		{"a link out", []tar.Header{dir("x"), link("x/l", "../outside")}, "", "l: a link that leads out, to ../outside"},
		{"an absolute link, and a file through it", []tar.Header{dir("x"), link("x/l", "/tmp"), file("x/l/evil", "e")}, "", "l: a link that leads out"},
		{"a link inside, and a file through it", []tar.Header{dir("x"), dir("x/d"), link("x/l", "d"), file("x/l/evil", "e")}, "links are not followed here", ""},
		{"a link that is there, and a file through it", []tar.Header{dir("x"), file("x/there/evil", "e")}, "links are not followed here", ""},
		{"a link that is there, and a folder in its place", []tar.Header{dir("x"), dir("x/there")}, "links are not followed here", ""},
		{"a link that is there, and a link in it", []tar.Header{dir("x"), link("x/there/l", "a")}, "links are not followed here", ""},
		{"a way out by two links", []tar.Header{dir("x"), dir("x/d"), link("x/d/up", ".."), link("x/l", "d/up/../outside")}, "", "l: a link that leads out"},
		{"a name for a file outside", []tar.Header{dir("x"), hard("x/h", "/etc/passwd")}, "begins with /", ""},
		{"a name for a file outside by ..", []tar.Header{dir("x"), hard("x/h", "x/../../outside/mine")}, "leads out", ""},
		{"a name for a file through a link", []tar.Header{dir("x"), hard("x/h", "x/there/mine")}, "links are not followed here", ""},
		{"a name for a link", []tar.Header{dir("x"), dir("x/d"), link("x/d/up", "../outside"), hard("x/h", "x/d/up")}, "", "h: a link that leads out, to ../outside"},
		{"a name for what is not there", []tar.Header{dir("x"), hard("x/h", "x/none/mine")}, "", "h: a name of none/mine, which is left out"},
		{"a device and a pipe", []tar.Header{dir("x"), {Name: "x/null", Typeflag: tar.TypeChar}, {Name: "x/p", Typeflag: tar.TypeFifo}}, "", "p: neither a file"},
		{"a file in a link's place", []tar.Header{dir("x"), file("x/there", "mine now")}, "", ""},
		{"a name that commands a terminal", []tar.Header{dir("x"), link("x/\x1b[2J", "/etc")}, "", "[2J: a link"},
		{"nothing", nil, "it is empty", ""},
		{"a device alone", []tar.Header{{Name: "x", Typeflag: tar.TypeChar}}, "x is neither a file nor a folder", ""},
		{"a name that is too long", []tar.Header{dir("x"), file("x/"+strings.Repeat("d/", 3000)+"d", "")}, "too long", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			top := t.TempDir()
			write(t, top+"/outside/mine", "mine")
			if err := errors.Join(os.Mkdir(top+"/to", 0o755), os.Symlink("../outside", top+"/to/there")); err != nil {
				t.Fatal(err)
			}
			to := top + "/to"
			if len(r.entries) > 0 && r.entries[0].Typeflag == tar.TypeReg {
				to += "/x"
			}
			c := hostile(t, r.entries...)
			var notes strings.Builder
			c.Notes = &notes
			err := c.Down(t.Context(), "/x", to)
			if err == nil && r.err != "" || err != nil && (r.err == "" || !strings.Contains(err.Error(), r.err)) {
				t.Errorf("%v, want %q", err, r.err)
			}
			if !strings.Contains(notes.String(), r.left) || r.left == "" && notes.Len() > 0 || strings.Contains(notes.String(), "\x1b") {
				t.Errorf("notes %q, want %q", notes.String(), r.left)
			}
			entries, _ := os.ReadDir(top)
			inside, _ := os.ReadDir(top + "/outside")
			var s unix.Stat_t
			if err := unix.Stat(top+"/outside/mine", &s); len(entries) != 2 || len(inside) != 1 || err != nil || s.Nlink != 1 {
				t.Errorf("outside there are %v and %v, and mine has %d names (%v)", entries, inside, s.Nlink, err)
			}
			filepath.WalkDir(top+"/to", func(file string, d fs.DirEntry, _ error) error {
				if i, err := os.Lstat(file); err == nil && (i.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice|fs.ModeNamedPipe) != 0 && !d.IsDir()) {
					t.Errorf("%s has the mode %s", file, i.Mode())
				}
				return nil
			})
		})
	}
}

func TestLinksThatStayBelow(t *testing.T) {
	for _, r := range []struct {
		depth  int
		target string
		stays  bool
	}{
		{0, "a", true}, {0, "./a/b", true}, {1, "..", true}, {1, "../a", true}, {2, "../../a", true}, {0, ".", true},
		{0, "..", false}, {1, "../..", false}, {0, "a/..", false}, {2, "a/../b", false}, {0, "/", false}, {0, "", false}, {1, ".././../a", false},
	} {
		if staysBelow(r.depth, r.target) != r.stays {
			t.Errorf("%d deep, %q stays: %v", r.depth, r.target, !r.stays)
		}
	}
}

// A tar that never ends is given up, and so is one that sends something else.
func TestWhatIsNoArchiveIsGivenUp(t *testing.T) {
	for name, send := range map[string]func(w io.Writer) error{
		"words":                    func(w io.Writer) error { _, err := io.WriteString(w, strings.Repeat("hello ", 1000)); return err },
		"what never ends":          func(w io.Writer) error { return endless(w, nil) },
		"words, and then it hangs": nil,
		"an archive and on":        func(w io.Writer) error { return endless(w, archived()) },
	} {
		c := &Copy{Subject: "container main", Pod: "web", Notes: io.Discard, Exec: func(ctx context.Context, command []string, s stream.Streams) (int, error) {
			if slices.Contains(command, "--version") {
				return 0, nil
			}
			if send == nil {
				io.WriteString(s.Out, strings.Repeat("hello ", 1000)[:512])
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}
			return 0, send(s.Out)
		}}
		if err := c.Down(t.Context(), "/x", t.TempDir()+"/x"); err == nil || !strings.Contains(err.Error(), "what tar sends is no archive of this") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func archived() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Mode: 0o644})
	w.Close()
	return b.Bytes()
}

func endless(w io.Writer, first []byte) error {
	_, err := w.Write(first)
	for zeros := bytes.Repeat([]byte{'x'}, 1<<16); err == nil; {
		_, err = w.Write(zeros)
	}
	return err
}

// A file that says that it is larger than any disk costs nothing.
func TestAFileOfAMillionTerabytesIsRefused(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1 << 60})
	c := &Copy{Subject: "container main", Pod: "web", Notes: io.Discard, Exec: func(_ context.Context, _ []string, s stream.Streams) (int, error) {
		_, err := s.Out.Write(b.Bytes())
		return 0, err
	}}
	if err := c.Down(t.Context(), "/x", t.TempDir()+"/x"); err == nil || !strings.Contains(err.Error(), "more than 1 TiB with holes") {
		t.Errorf("%v", err)
	}
}

func TestACopyEndsWithItsContext(t *testing.T) {
	asked := errors.New("asked for")
	for _, copies := range []func(c *Copy) func(ctx context.Context, from, to string) error{
		func(c *Copy) func(ctx context.Context, from, to string) error { return c.Down },
		func(c *Copy) func(ctx context.Context, from, to string) error { return c.Up },
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := &Copy{Subject: "container main", Pod: "web", Notes: io.Discard, Exec: func(ctx context.Context, command []string, _ stream.Streams) (int, error) {
			if slices.Contains(command, "--version") {
				return 0, nil
			}
			cancel(asked)
			return 0, context.Cause(ctx)
		}}
		if err := copies(c)(ctx, t.TempDir(), t.TempDir()); !errors.Is(err, asked) {
			t.Errorf("%v", err)
		}
	}
}

// What is neither a file, a folder nor a link is left out on the way in, and nothing waits for it.
func TestAPipeIsNotPacked(t *testing.T) {
	c := here(t, nil)
	var notes strings.Builder
	c.Notes = &notes
	from, to := t.TempDir(), t.TempDir()
	if err := syscall.Mkfifo(from+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, from+"/a", "a")
	if err := c.Up(t.Context(), from, to+"/x"); err != nil {
		t.Fatal(err)
	}
	if want := "monopod: left out: " + from + "/pipe: it is not a regular file\n"; notes.String() != want {
		t.Errorf("%q, want %q", notes.String(), want)
	}
	if _, err := os.Stat(to + "/x/a"); err != nil {
		t.Error(err)
	}
	if err := c.Up(t.Context(), from+"/pipe", to+"/y"); err == nil || !strings.Contains(err.Error(), "neither a file nor a folder") {
		t.Errorf("%v", err)
	}
}

// A tar without what it is asked for sends an empty archive, says so and ends: its words count.
func TestWhatTarSaysOfAnEmptyArchiveCounts(t *testing.T) {
	c := &Copy{Subject: "container main", Pod: "web", Notes: io.Discard, Exec: func(ctx context.Context, command []string, s stream.Streams) (int, error) {
		if slices.Contains(command, "--version") {
			return 0, nil
		}
		_, err := s.Out.Write(make([]byte, 1024))
		if err != nil {
			return 0, err
		}
		_, err = io.WriteString(s.Err, "tar: ./nosuch: No such file or directory\n")
		if err != nil {
			return 0, err
		}
		_, err = s.Out.Write(make([]byte, 9216)) // the rest of its block
		if err != nil {
			return 0, err
		}
		return 1, nil
	}}
	err := c.Down(t.Context(), "/nosuch", t.TempDir()+"/x")
	want := "tar in container main ended with exit code 1: tar: ./nosuch: No such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A name is meant as it is: tar may read a backslash in one as the beginning of another byte.
func TestAFileIsFoundByItsVeryName(t *testing.T) {
	tars(t, func(t *testing.T, c *Copy) {
		dir, to := t.TempDir(), t.TempDir()
		for _, name := range []string{`new\nline`, `letter\101`, `two\\`, `*?[a]`} {
			write(t, dir+"/"+name, name)
			if err := c.Down(t.Context(), dir+"/"+name, to); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if text, err := os.ReadFile(to + "/" + name); string(text) != name {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	})
}
