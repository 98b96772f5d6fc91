package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri/critest"
	"monopod/manifests"
)

// folderWalk is a random walk of an agent whose manifest folder is a mount that goes
// away and comes back.
type folderWalk struct {
	*rig
	rand   *rand.Rand
	trace  []string
	home   string            // the file system that is mounted at folder, most of the time
	folder string            // that the agent reads
	files  map[string]string // by pod, the image that its file says
	over   []string          // what is mounted at folder, the newest last
	record manifests.Record
	before []string // what ran when the mount went away
	source *manifests.Source
	quit   func() // ends the Source
}

const (
	homeMount  = "home"
	otherMount = "another file system"
)

// Whatever happens to the mount of the manifest folder removes nothing; once it is
// back, what it says counts.
func TestModelOfAFolderThatUnmounts(t *testing.T) {
	first, steps := modelSeeds(t)
	if d, ok := mountDisk(t.TempDir()); ok {
		noErr(t, d.unmount())
	} else {
		t.Log("NOT TESTED: manifest folders that unmount, as nothing can be mounted; run this as root")
		return
	}
	for k := range max(1, steps/modelWalk/4) {
		t.Run(fmt.Sprintf("seed %d", first+k), func(t *testing.T) {
			t.Parallel()
			walkFolder(t, uint64(first+k), min(steps, modelWalk))
		})
	}
}

func walkFolder(t *testing.T, seed uint64, steps int) {
	dir := quickDir(t)
	disk, ok := mountDisk(dir)
	if !ok {
		t.Fatal("nothing can be mounted any more")
	}
	defer func() { noErr(t, disk.unmount()) }()
	synctest.Test(t, func(t *testing.T) {
		f := &folderWalk{rig: &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(dir, "root"), log: &lines{}}, rand: rand.New(rand.NewPCG(seed, 1)),
			home: disk.at, folder: filepath.Join(dir, "manifests"), files: map[string]string{}}
		noErr(t, os.Mkdir(f.folder, 0o700))
		f.AddImage("img:1", "img:2")
		f.CountOnly()
		defer func() {
			f.quit()
			f.stop()
			for len(f.over) > 0 {
				f.unmount()
			}
			if t.Failed() {
				t.Logf("the agent's log:\n%s", f.log)
				t.Logf("make model SEED=%d STEPS=%d walks it again. Its steps:\n%s", seed, steps, strings.Join(f.trace, "\n"))
			}
		}()
		f.mount(homeMount)
		f.launch()
		for range steps {
			f.step()
		}
	})
}

// launch starts an agent and the Source that it has its manifests from.
func (f *folderWalk) launch() {
	f.start()
	f.source = manifests.NewSource(manifests.SourceConfig{Dir: f.folder, Options: f.options, Known: f.known, Record: f.record, Boot: "boot", Unwatched: true,
		Save: func(r manifests.Record) error { f.record = r; return nil }})
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { f.source.Run(ctx) })
	parts.Go(func() { pump(ctx, f.source.Snapshots(), f.offers) })
	f.quit = func() { cancel(); parts.Wait() }
}

// pump passes on what is newest.
func pump(ctx context.Context, from <-chan manifests.Snapshot, to chan manifests.Snapshot) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-from:
			select {
			case <-to:
			default:
			}
			to <- s
		}
	}
}

func (f *folderWalk) at() string { return f.over[len(f.over)-1] }
func (f *folderWalk) away() bool { return len(f.over) == 0 || f.at() != homeMount }

func (f *folderWalk) mount(what string) {
	var err error
	switch f.over = append(f.over, what); what {
	case homeMount:
		err = unix.Mount(f.home, f.folder, "", unix.MS_BIND, "")
	default:
		err = unix.Mount("monopod-model", f.folder, "tmpfs", 0, "size=64k")
		if f.rand.IntN(2) == 0 { // an old disk, with a pod of its own
			err = errors.Join(err, os.WriteFile(filepath.Join(f.folder, "old.yaml"), []byte(manifest("old", "img:1")), 0o600))
		}
	}
	noErr(f.T, err)
}

func (f *folderWalk) unmount() {
	noErr(f.T, unix.Unmount(f.folder, unix.MNT_DETACH))
	f.over = f.over[:len(f.over)-1]
}

func (f *folderWalk) note(format string, args ...any) {
	f.trace = append(f.trace, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	fmt.Fprintf(f.log, "---- %s\n", fmt.Sprintf(format, args...))
}

// step does one thing and checks what must be.
func (f *folderWalk) step() {
	switch n := f.rand.IntN(10); {
	case n < 4:
		f.edit()
	case n < 7:
		f.toggle()
	case n < 8 && f.away() && f.rand.IntN(2) == 0:
		f.forget()
	case n < 8:
		f.note("the agent restarts")
		if f.quit(); f.rand.IntN(2) == 0 {
			f.kill()
		} else {
			f.stop()
		}
		f.launch()
	}
	d := pick(f.rand, 0, 100*time.Millisecond, time.Second, 10*time.Second, 10*time.Minute)
	f.after(d)
	if f.note("%s pass", d); f.away() {
		f.untouched()
	} else if f.rand.IntN(2) == 0 {
		f.settled()
	}
	if twice := f.DoubleRunning(); len(twice) > 0 {
		f.Fatalf("ran twice at a time: %v", twice)
	}
}

// edit changes a file on the home file system, whether it is mounted or not.
func (f *folderWalk) edit() {
	name := pick(f.rand, modelPods...)
	path := filepath.Join(f.home, name+".yaml")
	if f.files[name] != "" && f.rand.IntN(3) == 0 {
		f.note("%s: remove", name)
		delete(f.files, name)
		noErr(f.T, os.Remove(path))
		return
	}
	f.files[name] = pick(f.rand, "img:1", "img:2")
	f.note("%s: %s", name, f.files[name])
	noErr(f.T, os.WriteFile(path+".new", []byte(manifest(name, f.files[name])), 0o600))
	noErr(f.T, os.Rename(path+".new", path))
}

// toggle lets the mount go away, or come back. One that gives no pod is not missed.
func (f *folderWalk) toggle() {
	if f.away() {
		f.note("the folder is back")
		for f.away() {
			if len(f.over) == 0 {
				f.mount(homeMount)
				break
			}
			f.unmount()
		}
		return
	}
	if f.settled(); len(f.files) == 0 {
		return
	}
	f.before = f.running()
	switch f.rand.IntN(3) {
	case 0:
		f.note("the folder unmounts")
		f.unmount()
	case 1:
		f.note("another file system is where the folder was")
		f.unmount()
		f.mount(otherMount)
	case 2:
		f.note("another file system is over the folder")
		f.mount(otherMount)
	}
}

// forget lets a pod go by hand while the folder is away, which nothing else does. A folder
// that gave all that is left is not missed, so one stays.
func (f *folderWalk) forget() {
	if len(f.before) < 2 {
		return
	}
	pod, _, _ := strings.Cut(pick(f.rand, f.before...), " ")
	f.note("%s is forgotten by request", pod)
	if err := f.source.Forget(f.Context(), manifests.Key{Namespace: "default", Name: pod}); err != nil {
		f.Fatal(err)
	}
	f.before = slices.DeleteFunc(f.before, func(line string) bool { return strings.HasPrefix(line, pod+" ") })
	f.after(time.Minute)
	f.untouched()
}

// running returns what runs of the home file system's pods.
func (f *folderWalk) running() (out []string) {
	for _, c := range f.Containers() {
		if c.Pod != "old-n" && c.State == rt.ContainerState_CONTAINER_RUNNING {
			out = append(out, c.Pod+" "+c.Config.Image.UserSpecifiedImage+" "+c.ID)
		}
	}
	return out
}

// untouched checks that nothing was done because the folder is away, and that it is
// said.
func (f *folderWalk) untouched() {
	f.Helper()
	if now := f.running(); !slices.Equal(now, f.before) {
		f.Fatalf("the folder is away, and of\n%s\nis left\n%s", strings.Join(f.before, "\n"), strings.Join(now, "\n"))
	}
	f.after(5 * time.Second)
	if len(f.store.Manifests().Problems) == 0 {
		f.Fatal("it is not said that the folder is away")
	}
}

// settled checks that what runs is what the folder says.
func (f *folderWalk) settled() {
	f.Helper()
	f.after(time.Minute)
	synctest.Wait()
	var want, got []string
	for name, image := range f.files {
		want = append(want, name+"-n "+image)
	}
	for _, c := range f.Containers() {
		if c.State == rt.ContainerState_CONTAINER_RUNNING {
			got = append(got, c.Pod+" "+c.Config.Image.UserSpecifiedImage)
		}
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(want, got) {
		f.Fatalf("the folder says %v, and there are %v", want, got)
	}
	if p := f.store.Manifests().Problems; len(p) > 0 {
		f.Fatalf("problems of a folder that is there: %v", p)
	}
}
