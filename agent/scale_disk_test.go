//go:build !race

// The race detector has pools drop what they keep, by chance: what is allocated is not what the
// agent allocates. make unit has these tests run without it.

package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"monopod/agent/config"
	"monopod/cgroups/cgrouptest"
	"monopod/cri/critest"
	"monopod/manifests"
)

// spent is what something costs. What the runtime and the kernel that are played allocate is not in it.
type spent struct{ mallocs, bytes, calls, passes int64 }

func (s spent) minus(o spent) spent {
	return spent{s.mallocs - o.mallocs, s.bytes - o.bytes, s.calls - o.calls, s.passes - o.passes}
}

func (s spent) plus(o spent) spent {
	return spent{s.mallocs + o.mallocs, s.bytes + o.bytes, s.calls + o.calls, s.passes + o.passes}
}

// household is an agent with pods whose manifests lie in a folder, and which have cgroups. Its
// calls go over a wire, as far as messages are encoded and decoded.
type household struct {
	*rig
	folder string
	hints  chan fsnotify.Event
	quit   func()

	mu     sync.Mutex
	played spent // what the runtime and the kernel that are played allocated
}

// laterThanAllFiles is after all that the kernel writes: its clock is not the bubble's, which starts in
// 2000. A file of the future would be read again with each look.
var laterThanAllFiles = time.Now().Add(time.Hour)

// newHousehold lets n pods start.
func newHousehold(t *testing.T, dir string, n int) *household {
	time.Sleep(time.Until(laterThanAllFiles))
	h := &household{rig: &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(dir, "root"), log: &lines{}},
		folder: filepath.Join(dir, "manifests"), hints: make(chan fsnotify.Event, 1)}
	noErr(t, os.Mkdir(h.folder, 0o700))
	h.configure = func(cfg *config.Config) {
		cfg.MaxPods, cfg.PodsPerCore = int64(2*n+2), 0
		cfg.LogInterval = time.Hour // else all logs are looked at meanwhile, as they are when nothing starts
	}
	h.wire = func(c grpc.ClientConnInterface) grpc.ClientConnInterface { return &wired{c, h} }
	kernel := cgrouptest.V1(t)
	mkdir, rmdir := kernel.Mkdir, kernel.Rmdir
	kernel.Mkdir = func(dir string) (err error) { h.plays(func() { err = mkdir(dir) }); return err }
	kernel.Rmdir = func(dir string) (err error) { h.plays(func() { err = rmdir(dir) }); return err }
	h.cgroups, _ = cgroupsOn(t, kernel)
	h.AddImage("img:1")
	h.CountOnly()
	for k := range n {
		noErr(t, os.WriteFile(h.file(fmt.Sprintf("p%04d", k)), []byte(manifest(fmt.Sprintf("p%04d", k), "img:1")), 0o600))
	}
	h.start()
	source := manifests.NewSource(manifests.SourceConfig{Dir: h.folder, Options: h.options, Boot: "boot", Hints: h.hints, Rescan: time.Hour, Root: h.dir,
		Save: h.root.SaveFolder, SaveObjects: h.root.SaveObjects, Strict: true})
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { source.Run(ctx) })
	parts.Go(func() { pump(ctx, source.Snapshots(), h.offers) })
	h.quit = func() { cancel(); parts.Wait(); h.stop() }
	h.after(time.Minute)
	h.runs(n)
	return h
}

func (h *household) file(name string) string { return filepath.Join(h.folder, name+".yaml") }

func (h *household) runs(n int) {
	h.Helper()
	if running := len(h.Running()); running != n {
		h.Fatalf("%d run, want %d: %s", running, n, h.log)
	}
}

// plays does what a part of the machine does that is played.
func (h *household) plays(do func()) {
	before := allocated()
	do()
	after := allocated().minus(before)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.played = h.played.plus(after)
}

func allocated() spent {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return spent{mallocs: int64(m.Mallocs), bytes: int64(m.TotalAlloc)}
}

// asked is how often the agent has called the runtime, and its workers have looked at their pods.
func (h *household) asked() (s spent) {
	for _, of := range h.Counts() {
		s.calls += int64(of)
	}
	for name, value := range h.samples() {
		if strings.HasPrefix(name, "monopod_worker_passes_total") {
			s.passes += int64(value)
		}
	}
	return s
}

// own is what the agent has allocated.
func (h *household) own() spent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return allocated().minus(h.played)
}

// costs returns what it costs until all is at rest again that follows from a change.
func (h *household) costs(change func()) spent {
	runtime.GC()
	asked, before := h.asked(), h.own()
	change()
	h.after(8 * time.Second)
	return h.own().minus(before).plus(h.asked().minus(asked))
}

func (h *household) adds(name string) {
	temp := filepath.Join(h.dir, "temp")
	noErr(h.T, os.WriteFile(temp, []byte(manifest(name, "img:1")), 0o600))
	noErr(h.T, os.Rename(temp, h.file(name)))
	h.hints <- fsnotify.Event{Name: h.file(name), Op: fsnotify.Create}
}

func (h *household) removes(name string) {
	noErr(h.T, os.Remove(h.file(name)))
	h.hints <- fsnotify.Event{Name: h.file(name), Op: fsnotify.Remove}
}

// costsBeside returns what the start and the removal of a pod cost beside n others, in the middle
// of several.
func costsBeside(t *testing.T, n int) (start, removal spent) {
	dir := quickDir(t)
	synctest.Test(t, func(t *testing.T) {
		h := newHousehold(t, dir, n)
		defer func() { h.quit() }()
		var starts, removals []spent
		for k := range 4 {
			name := fmt.Sprintf("more%d", k)
			a := h.costs(func() { h.adds(name) })
			h.runs(n + 1)
			b := h.costs(func() { h.removes(name) })
			h.runs(n)
			if k > 0 { // the first finds nothing prepared
				starts, removals = append(starts, a), append(removals, b)
			}
		}
		start, removal = middle(starts), middle(removals)
	})
	return start, removal
}

func middle(all []spent) spent {
	of := func(what func(spent) int64) int64 {
		var list []int64
		for _, s := range all {
			list = append(list, what(s))
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	return spent{of(func(s spent) int64 { return s.mallocs }), of(func(s spent) int64 { return s.bytes }),
		of(func(s spent) int64 { return s.calls }), of(func(s spent) int64 { return s.passes })}
}

// wired is a connection whose answers are encoded, and decoded as the caller wants them to be.
type wired struct {
	grpc.ClientConnInterface
	of *household
}

func (w *wired) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) (err error) {
	time.Sleep(time.Millisecond)
	codec := encoding.GetCodecV2("proto")
	for _, o := range opts {
		if forced, is := o.(grpc.ForceCodecV2CallOption); is {
			codec = forced.CodecV2
		}
	}
	var data mem.BufferSlice
	w.of.plays(func() {
		answer := reply.(proto.Message).ProtoReflect().New().Interface()
		if err = w.ClientConnInterface.Invoke(ctx, method, args, answer, opts...); err == nil {
			var b []byte
			b, err = proto.Marshal(answer)
			data = mem.BufferSlice{mem.SliceBuffer(b)}
		}
	})
	if err != nil {
		return err
	}
	return codec.Unmarshal(data, reply)
}

// mostOfAnother is what each other pod may add to a start or a removal: its name in the folder and
// its line in the runtime's lists. What they cost alone differs by a twentieth from run to run.
var mostOfAnother = spent{mallocs: 4, bytes: 700}

// The most that a start and a removal may cost alone: a tenth more than they did when that was set.
var (
	mostOfAStart   = spent{mallocs: 3_500, bytes: 260_000}
	mostOfARemoval = spent{mallocs: 2_550, bytes: 225_000}
)

// What a start and a removal cost does not grow with the number of other pods, from the file to the
// status, but for what has to be read of each: its name in the folder, and its line in the runtime's
// lists. With SCALE, for these numbers.
func TestWhatAStartCostsBesideOtherPods(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // pools keep what they have
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))  // what is played is counted while nothing else runs
	aloneStart, aloneRemoval := costsBeside(t, 0)
	t.Logf("alone: start %+v, removal %+v", aloneStart, aloneRemoval)
	bounded(t, "a start", aloneStart, mostOfAStart)
	bounded(t, "a removal", aloneRemoval, mostOfARemoval)
	for _, text := range strings.Fields(cmp.Or(os.Getenv("SCALE"), "100")) {
		n, err := strconv.Atoi(text)
		noErr(t, err)
		start, removal := costsBeside(t, n)
		t.Logf("beside %d: start %+v, removal %+v", n, start, removal)
		grows(t, "a start", n, aloneStart, start)
		grows(t, "a removal", n, aloneRemoval, removal)
	}
}

// bounded checks what something allocates alone.
func bounded(t *testing.T, what string, alone, most spent) {
	t.Helper()
	if alone.mallocs > most.mallocs || alone.bytes > most.bytes {
		t.Errorf("%s costs %+v alone, want at most %+v", what, alone, most)
	}
}

// grows checks how much more something costs beside n others than alone.
func grows(t *testing.T, what string, n int, alone, beside spent) {
	t.Helper()
	more := beside.minus(alone)
	if more.mallocs > alone.mallocs/20+int64(n)*mostOfAnother.mallocs || more.bytes > alone.bytes/20+int64(n)*mostOfAnother.bytes {
		t.Errorf("%s costs %+v beside %d others, and %+v alone: more than a twentieth and %+v for each", what, beside, n, alone, mostOfAnother)
	}
	if more.calls > 2 || more.passes > 1 {
		t.Errorf("%s costs %+v more beside %d others, want no calls or passes", what, more, n)
	}
}
