package agent

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/fetch"
)

// inputWalk is a random walk of an agent through what may become of its manifests: the files of
// a folder, the folder itself, and the answers of a URL. The folder is polled, as inotify does not
// go with time that a test makes.
type inputWalk struct {
	*rig
	rand   *rand.Rand
	trace  []string
	home   string            // has what the folder may be
	folder string            // that the agent reads: a link
	at     string            // what it leads to, in home; "": nothing
	turns  int               // how often another directory became the folder
	found  bool              // a file of that directory has given a pod: it may be known to be the folder
	isNew  bool              // that directory has not been found to be the folder yet
	papers map[string]*paper // the files in it, by name
	site   *site

	source *manifests.Source
	quit   func() // ends the Source
	up     bool
	boots  int

	ran      map[string]run             // what was last found to run, by the name of the pod
	may      map[string]bool            // pods of which a good reading may have said another thing since
	said     map[string]bool            // "name image" of what could be read since
	forgot   map[string]bool            // pods that were let go by hand, and are given by nothing since
	sited    map[string]bool            // what the URL has, or had since it was well
	fell     map[string]bool            // papers that were spoilt since
	siteFell bool                       // whether the URL was spoilt since the last check
	filed    map[string]bool            // pods that files gave since
	moved    map[string]bool            // pods that another file gave since, and the one that they were of did not
	pending  map[string][]string        // the images of versions that wait for what they lack, by the name of their pod
	booted   bool                       // an agent was started since
	hints    map[string]map[string]bool // what each file named since it was well
}

// run is a container, and what gave its pod.
type run struct{ id, image, owner string }

// inputURL is where the walk's site is; owner is what papers call it.
const (
	inputURL   = "http://127.0.0.1/pods"
	inputSteps = 40
	// inputRest is how long it takes until all that is there was read, and counts: a URL that had
	// failed may not be asked for that long.
	inputRest = 3 * time.Minute
)

// inputStep is as step.
type inputStep struct {
	weight int
	do     func(*inputWalk) string
}

var inputStepTable = []inputStep{
	{6, (*inputWalk).writeFile},
	{3, (*inputWalk).dropFile},
	{3, (*inputWalk).moveDocument},
	{2, (*inputWalk).renameFile},
	{3, (*inputWalk).writeSlowly},
	{5, (*inputWalk).cutFile},
	{3, (*inputWalk).misspell},
	{4, (*inputWalk).makeUnreadable},
	{4, (*inputWalk).mendFile},
	{2, (*inputWalk).litter},
	{3, (*inputWalk).loseFolder},
	{3, (*inputWalk).findFolder},
	{3, (*inputWalk).turnFolder},
	{3, (*inputWalk).changeSite},
	{5, (*inputWalk).spoilSite},
	{3, (*inputWalk).mendSite},
	{2, (*inputWalk).forgetPod},
	{3, (*inputWalk).restartAgent},
	{1, (*inputWalk).restartMachine},
	{2, (*inputWalk).endContainer},
}

// Whatever becomes of files, of their folder and of a URL, what runs is what they are proven to
// say.
func TestModelOfInputs(t *testing.T) {
	if os.Getenv("MONOPOD_MODEL_STEPS") == "" {
		t.Skip("NOT WALKED: a walk takes a second or two; make model walks it")
	}
	first, steps := modelSeeds(t)
	percent := debug.SetGCPercent(1000) // as in TestModel
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	for k := range max(1, steps/inputSteps) {
		t.Run(fmt.Sprintf("seed %d", first+k), func(t *testing.T) {
			t.Parallel()
			walkInputs(t, uint64(first+k), min(steps, inputSteps))
		})
	}
}

func walkInputs(t *testing.T, seed uint64, steps int) {
	dir := quickDir(t)
	synctest.Test(t, func(t *testing.T) {
		w := &inputWalk{rig: &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(dir, "root"), log: &lines{}},
			home: filepath.Join(dir, "home"), folder: filepath.Join(dir, "manifests"), papers: map[string]*paper{}, site: newSite(),
			ran: map[string]run{}, may: map[string]bool{}, said: map[string]bool{}, forgot: map[string]bool{}, sited: map[string]bool{}, fell: map[string]bool{}, filed: map[string]bool{}, moved: map[string]bool{}, pending: map[string][]string{}, hints: map[string]map[string]bool{}}
		noErr(t, os.MkdirAll(filepath.Join(w.home, "0"), 0o700))
		w.AddImage("img:1", "img:2", "img:3")
		w.CountOnly()
		w.point("0")
		defer func() {
			w.end(false)
			w.site.close()
			if t.Failed() {
				t.Logf("the agent's log:\n%s", w.log)
				t.Logf("make model SEED=%d STEPS=%d walks it again. Its steps:\n%s", seed, steps, strings.Join(w.trace, "\n"))
			}
		}()
		w.rand = rand.New(rand.NewPCG(seed, 0))
		w.launch()
		w.wander(seed, steps)
	})
}

// wander takes n steps. Each has chances of its own, as those of the other walk.
func (w *inputWalk) wander(seed uint64, n int) {
	total := 0
	for _, s := range inputStepTable {
		total += s.weight
	}
	for k := range n {
		w.rand = rand.New(rand.NewPCG(seed, uint64(k+1)))
		at := w.rand.IntN(total)
		for _, s := range inputStepTable {
			if at -= s.weight; at >= 0 {
				continue
			}
			if did := s.do(w); did != "" {
				w.note("%d %s", k, did)
			}
			break
		}
		w.observe()
		w.after(pick(w.rand, 0, 0, 10*time.Millisecond, 300*time.Millisecond, 5*time.Second, time.Minute))
		if w.rand.IntN(2) == 0 {
			w.check()
		}
		if w.rand.IntN(10) == 0 {
			w.calm()
		}
	}
	w.calm()
}

func (w *inputWalk) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.trace = append(w.trace, time.Now().Format("15:04:05.000 ")+line)
	fmt.Fprintf(w.log, "---- %s\n", line)
}

// launch starts an agent, and the Source that it has its manifests from.
func (w *inputWalk) launch() {
	w.start()
	w.up, w.booted = true, true
	cached := w.root.Answer(inputURL, nil)
	asks := fetch.New(fetch.Settings{URL: inputURL, Known: cached, Dial: w.site.dial})
	given, _ := w.root.Objects(nil)
	w.source = manifests.NewSource(manifests.SourceConfig{Dir: w.folder, Options: w.options, Known: w.known, Unwatched: true,
		Rescan: pick(w.rand, 10*time.Second, 20*time.Second), Record: w.root.Folder(nil), Save: w.root.SaveFolder, KnownObjects: given, SaveObjects: w.root.SaveObjects,
		Boot: fmt.Sprint("boot", w.boots), Doubt: w.rand.IntN(2) == 0,
		URL: inputURL, Cached: cached, Answers: asks.Answers(), SaveAnswer: func(a manifests.Answer) error { return w.root.SaveAnswer(inputURL, a) }})
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { asks.Run(ctx) })
	parts.Go(func() { w.source.Run(ctx) })
	parts.Go(func() { pump(ctx, w.source.Snapshots(), w.offers) })
	w.quit = func() { cancel(); parts.Wait() }
}

// end ends the agent, if one runs.
func (w *inputWalk) end(kills bool) {
	if !w.up {
		return
	}
	w.up = false
	if kills {
		w.life.cutOff()
	}
	w.quit()
	w.stop()
	if kills {
		w.stop = func() {}
		w.bury()
	}
}

func (w *inputWalk) restartAgent() string {
	if !w.up {
		w.launch()
		return "an agent starts"
	}
	kills := w.rand.IntN(2) == 0
	w.end(kills)
	if w.rand.IntN(2) == 0 {
		return fmt.Sprintf("the agent ends, killed %v", kills)
	}
	w.launch()
	return fmt.Sprintf("the agent ends, killed %v, and another starts", kills)
}

func (w *inputWalk) restartMachine() string {
	w.end(true)
	w.Reboot()
	w.boots++
	for name, r := range w.ran {
		r.id = "" // of before
		w.ran[name] = r
	}
	return "the machine starts again"
}

func (w *inputWalk) endContainer() string {
	now := w.running()
	if len(now) == 0 {
		return ""
	}
	name := pick(w.rand, slices.Sorted(maps.Keys(now))...)
	w.Exit(now[name].id, 1)
	if r, was := w.ran[name]; was {
		r.id = ""
		w.ran[name] = r
	}
	return name + " crashes"
}

// forgetPod lets a pod go by hand, which is refused if something gives it.
func (w *inputWalk) forgetPod() string {
	name := pick(w.rand, inputPods...)
	if !w.up {
		return ""
	}
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	err := w.source.Forget(ctx, manifests.Key{Namespace: "default", Name: name + "-n"})
	if err != nil {
		return ""
	}
	w.forgot[name] = true
	delete(w.ran, name)
	for _, names := range w.hints {
		delete(names, name)
	}
	return name + " is forgotten by request"
}
