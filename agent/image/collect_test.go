package image

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/cri/critest"
)

const mb = 1 << 20

// yard is a Collector on a runtime in memory whose disk of 100 MB holds nothing
// but images.
type yard struct {
	*testing.T
	*critest.Runtime
	*Collector
	needs []Need
	blind bool // the manifests were not read
	log   strings.Builder
	extra uint64 // bytes on the disk that are no images
	file  string
	at    Limits
	why   []string // images were removed

	clockSet func(time.Time) bool
	events   []string // reasons
}

func inYard(t *testing.T, l Limits, test func(*yard)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		y := &yard{T: t, Runtime: critest.New(t), file: filepath.Join(dir, "images.json"), at: l}
		y.restart()
		test(y)
	})
}

// restart begins again with what is remembered.
func (y *yard) restart() {
	y.Collector = NewCollector(CollectorConfig{
		CRI: cri.New(y.Conn()), Limits: y.at, History: y.file, ClockSet: y.clockSet,
		Needs: func() ([]Need, bool) { return y.needs, !y.blind },
		Statfs: func(string) (uint64, uint64, error) {
			return 100 * mb, 100*mb - min(y.ImageBytes()+y.extra, 100*mb), nil
		},
		Collected: func(reason string) { y.why = append(y.why, reason) },
		Log:       slog.New(slog.NewTextHandler(&y.log, nil)), Event: func(reason, _ string) { y.events = append(y.events, reason) },
	})
}

// add brings images of so many MB.
func (y *yard) add(size uint64, refs ...string) {
	for _, ref := range refs {
		y.AddImage(ref)
		y.Resize(ref, size*mb)
	}
}

// run makes a container of an image in a pod, as whoever shares the runtime
// would, and returns what ends and removes it.
func (y *yard) run(pod, image string) (end, remove func()) {
	y.Helper()
	c := cri.New(y.Conn())
	config := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: pod, Namespace: "ns", Uid: pod}}
	labels := map[string]string{"io.kubernetes.pod.name": pod, "io.kubernetes.pod.namespace": "ns"}
	box, err := c.RunSandbox(y.Context(), config, "")
	if err != nil {
		y.Fatal(err)
	}
	id, err := c.CreateContainer(y.Context(), box, &rt.ContainerConfig{
		Metadata: &rt.ContainerMetadata{Name: "c"}, Image: &rt.ImageSpec{Image: image}, Labels: labels}, config)
	if err != nil {
		y.Fatal(err)
	}
	if err := c.StartContainer(y.Context(), id); err != nil {
		y.Fatal(err)
	}
	return func() { y.Exit(pod+"/c", 0) }, func() { y.RemoveSandboxBehindBack(pod) }
}

func (y *yard) collect() {
	y.Helper()
	if err := y.Collect(y.Context()); err != nil {
		y.Fatal(err)
	}
}

// has fails unless exactly these images, by short names, are there.
func (y *yard) has(want ...string) {
	y.Helper()
	var got []string
	for _, ref := range y.Images() {
		got = append(got, strings.TrimSuffix(strings.TrimPrefix(ref, "docker.io/library/"), ":latest"))
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		y.Errorf("images %q, want %q\n%s", got, want, y.log.String())
	}
}

// A disk may stay too full for days while nothing that could go is left on it, beside many containers of
// others.
func TestAFullDiskWithoutASpareImageCostsNoCallForEachContainer(t *testing.T) {
	inYard(t, Limits{}, func(y *yard) {
		y.add(20, "used")
		for k := range 30 {
			y.run(fmt.Sprintf("other%d", k), "used")
		}
		y.extra = 75 * mb
		time.Sleep(time.Hour)
		for range 3 {
			before := y.Counts()["ContainerStatus"]
			y.collect()
			if asked := y.Counts()["ContainerStatus"] - before; asked > 0 {
				t.Errorf("%d containers were asked for their status", asked)
			}
		}
		y.has("used")
	})
}

func TestImagesGoOnlyForRoomAndOldestUsedFirst(t *testing.T) {
	inYard(t, Limits{}, func(y *yard) {
		y.add(20, "never", "first", "second", "third")
		for _, image := range []string{"first", "second", "third"} {
			_, remove := y.run(image, image)
			y.collect()
			time.Sleep(time.Hour)
			y.collect()
			remove()
		}
		y.has("never", "first", "second", "third") // 80 %
		y.add(4, "late")
		y.collect()
		y.has("never", "first", "second", "third", "late") // 84 %
		y.extra = mb
		y.collect()
		y.has("first", "second", "third", "late") // 85 %, and 20 MB are enough
		y.extra = 30 * mb
		y.collect()
		y.has("second", "third", "late") // 94 % before, 74 % now
		y.extra = 55 * mb
		y.collect()
		y.has("third", "late") // late was never used, but is young
		time.Sleep(time.Hour)
		y.extra = 65 * mb
		y.collect()
		y.has()
		if log := y.log.String(); strings.Index(log, "library/late") > strings.Index(log, "library/third") {
			y.Errorf("the order is wrong:\n%s", log)
		}
		if want := slices.Repeat([]string{ForSpace}, 5); !slices.Equal(y.why, want) {
			y.Errorf("told of %q", y.why)
		}
	})
}

func TestWhatIsNeededStays(t *testing.T) {
	inYard(t, Limits{MaxAge: time.Hour}, func(y *yard) {
		y.add(9, "running", "exited", "named", "bydigest", "pinned", "sandboxes", "mounted", "byid", "spare", "shared")
		end, _ := y.run("a", "exited")
		end()
		y.run("b", "running")
		y.run("c", "shared")
		y.Pin("pinned")
		y.SetSandboxImage("docker.io/library/sandboxes")
		c := cri.New(y.Conn())
		info := func(ref string) *rt.Image {
			i, err := c.Image(y.Context(), &rt.ImageSpec{Image: ref})
			if err != nil || i == nil {
				y.Fatal(i, err)
			}
			return i
		}
		y.needs = []Need{{"named", "ns/x"}, {info("bydigest").RepoDigests[0], "ns/y"}, {info("byid").Id, "ns/z"}, {"not-there", "ns/z"}}
		config := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "v", Namespace: "ns", Uid: "v"}}
		box, err := c.RunSandbox(y.Context(), config, "")
		if err != nil {
			y.Fatal(err)
		}
		if _, err := c.CreateContainer(y.Context(), box, &rt.ContainerConfig{
			Metadata: &rt.ContainerMetadata{Name: "c"}, Image: &rt.ImageSpec{Image: "shared"},
			Mounts: []*rt.Mount{{ContainerPath: "/x", Image: &rt.ImageSpec{Image: "mounted"}}}}, config); err != nil {
			y.Fatal(err)
		}
		y.collect()
		y.has("running", "exited", "named", "bydigest", "pinned", "sandboxes", "mounted", "byid", "shared") // 90 % of the disk: spare went
		time.Sleep(2 * time.Hour)
		y.extra = 20 * mb
		y.collect()
		y.has("running", "exited", "named", "bydigest", "pinned", "sandboxes", "mounted", "byid", "shared")
		if s := y.Shortfall(); s.Bytes == 0 || s.Since.IsZero() {
			y.Error("it is not said that there is no room")
		}
		y.collect()
		if n := strings.Count(y.log.String(), "FreeDiskSpaceFailed"); n != 1 || len(y.events) != 1 || y.events[0] != "FreeDiskSpaceFailed" {
			y.Errorf("it is said %d times", n)
		}
		y.needs, y.extra = nil, 0
		y.collect()
		time.Sleep(2 * time.Hour)
		y.collect()
		y.has("running", "exited", "pinned", "sandboxes", "mounted", "shared")
		if s := y.Shortfall(); s.Bytes != 0 || !strings.Contains(y.log.String(), "has room again") {
			y.Error("it is not said that there is room again")
		}
	})
}

func TestNothingGoesBeforeTheManifestsAreKnown(t *testing.T) {
	inYard(t, Limits{}, func(y *yard) {
		y.add(90, "big")
		y.blind = true
		y.collect()
		y.has("big")
		if _, _, err := y.List(y.Context()); !errors.Is(err, errUnknown) {
			y.Errorf("list: %v", err)
		}
		y.blind = false
		y.collect()
		y.has()
	})
}

func TestAges(t *testing.T) {
	inYard(t, Limits{MinAge: time.Minute, MaxAge: 24 * time.Hour}, func(y *yard) {
		y.add(5, "old", "used")
		_, remove := y.run("p", "used")
		y.collect()
		time.Sleep(23 * time.Hour)
		remove()
		y.collect()
		y.add(70, "young")
		y.collect()
		y.has("old", "used", "young") // none is old enough
		time.Sleep(2 * time.Hour)
		y.collect()
		y.has("used", "young") // used ended two hours ago
		if !slices.Equal(y.why, []string{ForAge}) {
			y.Errorf("told of %q", y.why)
		}
	})
}

func TestTheHistorySurvivesARestart(t *testing.T) {
	inYard(t, Limits{MaxAge: 24 * time.Hour}, func(y *yard) {
		y.add(5, "old", "used")
		_, remove := y.run("p", "used")
		y.collect()
		time.Sleep(23 * time.Hour)
		y.restart()
		y.collect()
		remove()
		time.Sleep(2 * time.Hour)
		y.restart()
		y.collect()
		y.has("used")
		if err := os.WriteFile(y.file, []byte("{"), 0o600); err != nil {
			y.Fatal(err)
		}
		y.restart()
		time.Sleep(20 * time.Hour)
		y.collect()
		y.has("used")
	})
}

func TestTimesOfTheFutureDoNotCount(t *testing.T) {
	now := time.Now()
	file := filepath.Join(t.TempDir(), "images.json")
	text := fmt.Sprintf(`{"a": {"first": %q, "used": %q}}`, now.Add(time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := CollectorConfig{History: file, ClockSet: func(time.Time) bool { return true }, Log: slog.Default()}
	if r := loadHistory(all, now)["a"]; r.First.After(now) || r.Used.After(now) || r.Used.IsZero() {
		t.Errorf("record %+v", r)
	}
}

// A machine without a battery wrote the times of its clock before that was set.
func TestTimesOfAClockThatWasNotSetDoNotCount(t *testing.T) {
	inYard(t, Limits{MaxAge: 24 * time.Hour}, func(y *yard) {
		y.add(5, "used", "unused")
		_, remove := y.run("p", "used")
		y.collect()
		remove()
		y.collect()
		set := time.Now().Add(time.Hour)
		time.Sleep(100 * time.Hour)
		y.clockSet = func(at time.Time) bool { return !at.Before(set) }
		y.restart()
		y.collect()
		y.has("unused", "used")
		time.Sleep(25 * time.Hour)
		y.collect()
		y.has()
	})
}

// Of a machine without a battery an image grows older than a boot, though the clock of each is behind
// at first. What that boot has used counts as used then.
func TestAnImageGrowsOldOverBootsWhoseClockIsNotSet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.json")
	const day = 24 * time.Hour
	boot := func(after time.Duration, test func(y *yard)) {
		inYard(t, Limits{MaxAge: 30 * day}, func(y *yard) {
			began := time.Now()
			time.Sleep(after)
			y.file, y.clockSet = file, func(at time.Time) bool { return at.Sub(began) > 100*day }
			y.restart()
			y.add(5, "old")
			test(y)
		})
	}
	boot(200*day, func(y *yard) { y.collect() })
	boot(0, func(y *yard) { // the clock is behind
		y.add(5, "new")
		y.collect()
		all, _, err := y.List(y.Context())
		if err != nil || all[0].FirstSeen.After(time.Now()) || all[1].FirstSeen.After(time.Now()) {
			t.Errorf("images %+v, %+v, %v", all[0], all[1], err)
		}
		y.has("old", "new")
	})
	boot(231*day, func(y *yard) {
		y.add(5, "new")
		y.collect()
		y.has("new")
	})
}

// A full disk is made free also before the clock is set.
func TestADiskIsMadeFreeBeforeTheClockIsSet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.json")
	for _, after := range []time.Duration{time.Hour, 0} {
		inYard(t, Limits{}, func(y *yard) {
			began := time.Now()
			time.Sleep(after)
			y.file, y.clockSet = file, func(at time.Time) bool { return at.Sub(began) >= time.Hour }
			y.restart()
			y.add(20, "old")
			y.collect()
			if after > 0 {
				return
			}
			y.extra = 70 * mb
			time.Sleep(2 * time.Minute)
			y.collect()
			y.has()
		})
	}
}

func TestAPodThatComesMeanwhileKeepsItsImage(t *testing.T) {
	inYard(t, Limits{}, func(y *yard) {
		y.add(45, "a", "b")
		y.collect() // one of the two went
		y.add(45, "a", "b")
		y.Fault(critest.On("ListContainers").Nth(1).After(func() { y.needs = []Need{{"a", "ns/p"}, {"b", "ns/p"}} }))
		y.collect()
		y.has("a", "b")
	})
}

func TestWhatCannotBeDoneIsSaidOnce(t *testing.T) {
	inYard(t, Limits{}, func(y *yard) {
		y.add(45, "a", "b")
		y.Fault(critest.On("RemoveImage").Fail(codes.Unknown, "disk on fire"))
		for range 4 {
			y.logError(y.Context(), y.Collect(y.Context()))
		}
		if n := strings.Count(y.log.String(), "ImageGCFailed"); n != 1 || !slices.Equal(y.events, []string{"FreeDiskSpaceFailed", "ImageGCFailed"}) {
			y.Errorf("said %d times:\n%s", n, y.log.String())
		}
		y.has("a", "b")
		y.SetImageDir("")
		y.ClearFaults()
		if err := y.Collect(y.Context()); err == nil || !strings.Contains(err.Error(), "does not say where its images are") {
			y.Errorf("error %v", err)
		}
		entries, disk, err := y.List(y.Context())
		if err != nil || disk != nil || entries[0].Why != "unused; how full the disk is, is not known" {
			y.Errorf("list %+v %v %v", entries, disk, err)
		}
	})
}

func TestAHistoryThatCannotBeKeptIsSaidOnce(t *testing.T) {
	inYard(t, Limits{}, func(y *yard) {
		y.add(20, "a")
		y.config.History = filepath.Join(filepath.Dir(y.file), "none", "images.json")
		for k := range 3 {
			y.add(1, fmt.Sprint("new", k))
			y.collect()
			time.Sleep(time.Hour)
		}
		if n := strings.Count(y.log.String(), "no such file"); n != 1 {
			t.Errorf("said %d times: %s", n, &y.log)
		}
	})
}

func TestRunCollectsWhenKickedAndEverySoOften(t *testing.T) {
	inYard(t, Limits{}, func(y *yard) {
		y.add(90, "a")
		go y.Collector.Run(y.Context())
		synctest.Wait()
		y.has("a")
		y.Wake()
		synctest.Wait()
		y.has()
		y.add(90, "b")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		y.has("b") // too young
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		y.has()
	})
}

// CRI-O does not look up a short name that may be of several registries: what may be meant
// stays, and all else is collected.
func TestANameThatTheRuntimeDoesNotResolveStopsNoCollection(t *testing.T) {
	inYard(t, Limits{MaxAge: time.Hour}, func(y *yard) {
		y.add(10, "quay.io/team/tool:1", "quay.io/team/tool:2", "other:1")
		y.needs = []Need{{"tool:1", "ns/p"}}
		y.Fault(critest.On("ImageStatus").Of("tool:1").Fail(codes.Unknown, "short name mode is enforcing, but image name tool:1 returns ambiguous list"))
		y.collect()
		time.Sleep(2 * time.Hour)
		y.collect()
		y.has("quay.io/team/tool:1")
		all, _, err := y.List(y.Context())
		if err != nil || len(all) != 1 || all[0].Why != "used by ns/p" {
			y.Errorf("list %+v, %v", all, err)
		}
		for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled} {
			y.ClearFaults()
			y.Fault(critest.On("ImageStatus").Fail(code, "not now"))
			if err := y.Collect(y.Context()); err == nil {
				y.Errorf("%s says nothing of the image, and is taken for an answer", code)
			}
		}
	})
}
