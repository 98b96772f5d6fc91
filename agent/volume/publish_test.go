package volume

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// shelf is a pod with a configMap volume "v" whose contents change.
type shelf struct {
	*testing.T
	root, dir string
	pod       *v1.Pod
	in        Input
	m         *v1.ConfigMap
}

func newShelf(t *testing.T, data map[string]string) *shelf {
	s := &shelf{T: t, root: testRoot(t), pod: testPod(configMap("m")), in: input(), m: &v1.ConfigMap{}}
	s.in.Objects = objects{configMaps: map[string]*v1.ConfigMap{"m": s.m}}
	s.show(data)
	return s
}

func (s *shelf) set(data map[string]string) error {
	s.m.Data = data
	m, err := SetUp(s.Context(), s.root, s.pod, s.in)
	s.dir = m["v"].HostPath
	return err
}

func (s *shelf) show(data map[string]string) {
	s.Helper()
	must(s.T, s.set(data))
}

func (s *shelf) at(name string) string { return filepath.Join(s.dir, name) }

func (s *shelf) link(name string) string {
	s.Helper()
	to, err := os.Readlink(s.at(name))
	must(s.T, err)
	return to
}

// expect checks the names in the volume, besides ..data and one version.
func (s *shelf) expect(want ...string) {
	s.Helper()
	want = append(want, dataLink, s.link(dataLink))
	slices.Sort(want)
	if got := names(s.T, s.dir); !slices.Equal(got, want) {
		s.Errorf("the volume has %v, want %v", got, want)
	}
}

func (s *shelf) reads(name, want string) {
	s.Helper()
	if got, err := os.ReadFile(s.at(name)); string(got) != want || err != nil {
		s.Errorf("%s reads %q, %v", name, got, err)
	}
}

func TestLayout(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	s := newShelf(t, map[string]string{"a": "1"})
	v := s.link(dataLink)
	if !regexp.MustCompile(`^\.\.\d{4}(_\d\d){5}\.\d+$`).MatchString(v) {
		t.Errorf("version %s", v)
	}
	if at, err := time.ParseInLocation(timeStamp, v[:len(timeStamp)], time.UTC); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("version %s of %v: %v", v, at, err)
	}
	if s.link("a") != "..data/a" || mode(t, s.at(v)) != os.ModeDir|0o755 {
		t.Errorf("a -> %s, mode %v", s.link("a"), mode(t, s.at(v)))
	}
	s.expect("a")
}

func TestOnlyChangesAreWritten(t *testing.T) {
	s := newShelf(t, map[string]string{"a": "1", "b": "2"})
	before := s.link(dataLink)
	s.pod.Spec.Volumes[0].ConfigMap.DefaultMode = new(int32(0o600)) // not a change of content
	s.show(map[string]string{"a": "1", "b": "2"})
	if s.link(dataLink) != before {
		t.Error("written again without a change")
	}
	for _, data := range []map[string]string{{"a": "1", "b": "3"}, {"a": "1"}, {"a": "1", "c": ""}, {"a": "1", "d": ""}, {}} {
		was := s.link(dataLink)
		s.show(data)
		if s.link(dataLink) == was {
			t.Errorf("%v is not a change", data)
		}
		var want []string
		for name, text := range data {
			want = append(want, name)
			s.reads(name, text)
		}
		s.expect(want...)
	}
}

func TestAFileThatSomebodyChangedIsWrittenAgain(t *testing.T) {
	s := newShelf(t, map[string]string{"a": "12"})
	must(t, os.WriteFile(s.at("a"), []byte("21"), 0o644))
	s.show(map[string]string{"a": "12"})
	s.reads("a", "12")
	s.show(map[string]string{"a": ""})
	must(t, os.Remove(s.at("..data/a")))
	must(t, unix.Mkfifo(s.at("..data/a"), 0o600)) // of size 0 too, and whoever reads it waits
	s.show(map[string]string{"a": ""})
	s.reads("a", "")
}

func TestWhatACrashLeftIsFinished(t *testing.T) {
	for _, c := range []struct {
		name  string
		crash func(s *shelf)
	}{
		{"a version nobody shows", func(s *shelf) {
			must(s.T, os.MkdirAll(s.at("..2020_01_02_03_04_05.7/sub"), 0o755))
			must(s.T, os.WriteFile(s.at("..2020_01_02_03_04_05.7/sub/half"), nil, 0o600))
		}},
		{"the link before its rename", func(s *shelf) { must(s.T, os.Symlink("..2020_01_02_03_04_05.7", s.at(newLink))) }},
		{"no link to a file", func(s *shelf) { must(s.T, os.Remove(s.at("a"))) }},
		{"a link to a file that is gone", func(s *shelf) { must(s.T, os.Symlink("..data/old", s.at("old"))) }},
		{"a link elsewhere", func(s *shelf) {
			must(s.T, os.Remove(s.at("a")))
			must(s.T, os.Symlink("/etc/hostname", s.at("a")))
		}},
		{"data that leads nowhere", func(s *shelf) { must(s.T, os.RemoveAll(s.at(s.link(dataLink)))) }},
		{"data that leads out", func(s *shelf) {
			must(s.T, os.Remove(s.at(dataLink)))
			must(s.T, os.Symlink("/etc", s.at(dataLink)))
		}},
		{"data that leads elsewhere", func(s *shelf) {
			must(s.T, os.Rename(s.at(s.link(dataLink)), s.at("mine")))
			must(s.T, os.Remove(s.at(dataLink)))
			must(s.T, os.Symlink("mine", s.at(dataLink)))
		}},
		{"data that is a directory", func(s *shelf) {
			must(s.T, os.Remove(s.at(dataLink)))
			must(s.T, os.MkdirAll(s.at(dataLink+"/x"), 0o755))
		}},
		{"an empty directory in the way", func(s *shelf) {
			must(s.T, os.Remove(s.at("a")))
			must(s.T, os.Mkdir(s.at("a"), 0o755))
		}},
		{"no mark", func(s *shelf) {
			must(s.T, os.Remove(filepath.Join(s.root, "pods/u1/plugins/kubernetes.io~empty-dir/wrapped_v/ready")))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t, map[string]string{"a": "1"})
			c.crash(s)
			s.show(map[string]string{"a": "1"})
			s.reads("a", "1")
			os.RemoveAll(s.at("mine"))
			s.expect("a")
		})
	}
}

func TestWhatIsNotOursStays(t *testing.T) {
	s := newShelf(t, map[string]string{"a": "1"})
	must(t, os.Mkdir(s.at("dir"), 0o755)) // as for the subPath of a file that there is not
	must(t, os.Symlink("a", s.at("other")))
	s.show(map[string]string{"b": "2"})
	s.expect("b", "dir", "other")
}

func TestAVolumeThatIsFullKeepsWhatItShows(t *testing.T) {
	s := newShelf(t, nil)
	s.pod = testPod(secret("s"))
	shop := objects{secrets: map[string]*v1.Secret{"s": {Data: map[string][]byte{"a": []byte("1")}}}}
	s.in.Objects, s.in.Memory = shop, 64<<10
	s.show(nil)
	for range 3 {
		shop.secrets["s"].Data = map[string][]byte{"a": []byte("2"), "b": make([]byte, 128<<10)}
		if err := s.set(nil); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Fatalf("got %v", err)
		}
		s.dir = filepath.Join(s.root, "pods/u1/volumes", secretPlugin, "v")
		s.reads("a", "1")
	}
	shop.secrets["s"].Data = map[string][]byte{"a": []byte("3")}
	s.show(nil)
	s.reads("a", "3")
	s.expect("a")
}

// A reader that opens the directory behind ..data sees one state of it.
func TestReadersNeverSeeHalfAnUpdate(t *testing.T) {
	s := newShelf(t, map[string]string{"a": "0", "b": "0"})
	ctx, stop := context.WithCancel(t.Context())
	read := make(chan int)
	data := s.at(dataLink)
	go func() {
		looks := 0
		for ctx.Err() == nil {
			version, err := os.OpenRoot(data)
			if err != nil {
				continue // the old version was removed before it was opened
			}
			a, errA := version.ReadFile("a")
			b, errB := version.ReadFile("b")
			if errA == nil && errB == nil {
				looks++
				if string(a) != string(b) {
					t.Errorf("a reads %q, b reads %q", a, b)
				}
			}
			if _, err := os.Lstat(data); err != nil {
				t.Error(err)
			}
			version.Close()
		}
		read <- looks
	}()
	for n := range 200 {
		text := strings.Repeat("x", n+1)
		s.show(map[string]string{"a": text, "b": text})
	}
	stop()
	if <-read == 0 {
		t.Error("no look succeeded: the test proves nothing")
	}
}

// A privileged container can mount a directory of the machine on a directory
// of the volume, and have the mount reach the machine.
func TestAnUpdateRemovesNothingThroughAMount(t *testing.T) {
	s := newShelf(t, map[string]string{"k": "1"})
	s.pod.Spec.Volumes[0].ConfigMap.Items = []v1.KeyToPath{{Key: "k", Path: "sub/k"}}
	s.show(map[string]string{"k": "1"})
	machine := t.TempDir()
	must(t, os.WriteFile(filepath.Join(machine, "file"), nil, 0o600))
	at := s.at(s.link(dataLink) + "/sub")
	must(t, unix.Mount(machine, at, "", unix.MS_BIND, ""))
	s.show(map[string]string{"k": "2"})
	s.reads("sub/k", "2")
	kept(t, filepath.Join(machine, "file"))
	if err := TearDown(t.Context(), s.root, "u1"); err == nil {
		t.Error("torn down with a mount below")
	}
	must(t, unix.Unmount(at, 0))
	s.show(map[string]string{"k": "2"})
	s.expect("sub")
}

// What the volume is made in belongs to the agent alone; should somebody swap
// it for a link all the same, nothing is written through that.
func TestPublishingSurvivesASwap(t *testing.T) {
	for _, c := range []struct {
		v     v1.Volume
		there bool // what a link leads to; else it could be made
	}{{configMap("m"), true}, {secret("s"), true}, {secret("s"), false}} {
		s := newShelf(t, nil)
		s.pod = testPod(c.v)
		secrets := map[string]*v1.Secret{"s": {}}
		s.in.Objects = objects{configMaps: map[string]*v1.ConfigMap{"m": s.m}, secrets: secrets}
		s.show(nil)
		outside := t.TempDir()
		victim, link := filepath.Dir(s.dir), filepath.Join(s.root, "link")
		into := filepath.Join(outside, "v")
		if c.there {
			must(t, os.Mkdir(into, 0o700))
		}
		must(t, os.Symlink(outside, link))
		ctx, stop := context.WithCancel(t.Context())
		swapped := make(chan struct{})
		go func() {
			defer close(swapped)
			for ctx.Err() == nil {
				unix.Renameat2(unix.AT_FDCWD, victim, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}()
		made := 0
		for n := range 500 {
			text := strings.Repeat("x", n+1)
			secrets["s"].Data = map[string][]byte{"a": []byte(text)}
			if s.set(map[string]string{"a": text}) == nil {
				made++
			}
		}
		stop()
		<-swapped
		if made == 0 {
			t.Error("no try succeeded: the test proves nothing")
		}
		if !c.there {
			gone(t, into)
		} else if got := names(t, into); len(got) > 0 || mode(t, into) != os.ModeDir|0o700 {
			t.Errorf("made outside: %v, mode %v", got, mode(t, into))
		}
		if below, _ := mountsBelow(outside); len(below) > 0 {
			t.Errorf("mounted outside: %v", below)
		}
		unmountAll(t, s.root)
	}
}

// A disk that takes no file fails with each try for one reason, which is told in the same words: it
// is logged once.
func TestWhatAFullDiskDoesNotTakeIsOneErrorForAllTries(t *testing.T) {
	for _, row := range []struct{ name, options, want string }{
		{"the content does not fit", "size=65536", "write sub/a: no space left on device"},
		{"no folder can be made in the version", "nr_inodes=4", "write sub/a: no space left on device"},
		{"no version can be made", "nr_inodes=3", "make a directory in it: no space left on device"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newShelf(t, map[string]string{"a": "1"})
			s.pod.Spec.Volumes[0].ConfigMap.Items = []v1.KeyToPath{{Key: "a", Path: "sub/a"}}
			must(t, unix.Mount("tmpfs", s.dir, "tmpfs", 0, row.options))
			must(t, os.WriteFile(s.at("stays"), nil, 0o600))
			must(t, os.WriteFile(s.at("stays too"), nil, 0o600))
			for range 2 {
				err := s.set(map[string]string{"a": strings.Repeat("x", 100_000)})
				if err == nil || !strings.HasSuffix(err.Error(), row.want) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// A subPath is created as directories while its file is missing; the file takes their place once it comes, and
// what else is in such a directory stays.
func TestAFileTakesThePlaceOfTheFoldersOfASubPath(t *testing.T) {
	s := newShelf(t, nil)
	c := s.pod.Spec.Volumes[0].ConfigMap
	c.Optional, c.Items = new(true), []v1.KeyToPath{{Key: "a", Path: "conf.d/deep/app.conf"}}
	s.show(nil)
	dir := s.dir
	at := SubPathMount{Volume: "v", Mount: Mount{HostPath: dir}, Container: "main", Path: "conf.d/deep/app.conf"}
	_, err := subPath(s.root, "u1", at, newMountTable(PodDir(s.root, "u1")))
	must(t, err)
	must(t, os.WriteFile(s.at("conf.d/file"), nil, 0o600))
	if err := s.set(map[string]string{"a": "1"}); err == nil || !strings.Contains(err.Error(), "directory not empty") {
		t.Errorf("a file is removed: %v", err)
	}
	s.dir = dir
	kept(t, s.at("conf.d/file"))
	must(t, os.Remove(s.at("conf.d/file")))
	_, err = Refresh(t.Context(), s.root, s.pod, s.in)
	must(t, err)
	s.reads("conf.d/deep/app.conf", "1")
	target, err := subPath(s.root, "u1", at, newMountTable(PodDir(s.root, "u1")))
	must(t, err)
	if b, err := os.ReadFile(target); string(b) != "1" {
		t.Errorf("the subPath shows %q, %v", b, err)
	}
}
