package layers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"monopod/manifests"
)

// walker makes random steps with two folders, and knows what is desired after each.
type walker struct {
	*stack
	rand     *rand.Rand
	files    map[string]map[string]string // by folder and name: the pod's image; "": the file masks
	counts   map[string]map[string]string // by folder and pod: the image, as of when the folder was there last
	away     map[string]bool
	inherits map[string]bool   // of a lower folder that this agent has not read: the pods that it knows
	recorded map[string]bool   // the pods that both folders gave
	unread   bool              // this agent has not read the lower folder
	desired  map[string]string // by pod: image@folder
	trace    []string
	n        int
}

// podIn is the pod that a file gives: those of one name are of different pods in the two folders.
var podIn = map[string]map[string]string{"usr": {"a": "p", "b": "q", "c": "r"}, "etc": {"a": "q", "b": "p", "c": "r"}}

// Whatever happens to two folders, each pod is of the higher one that gives it, and nothing stops or
// starts that needs not: the folder that is away counts as it was.
func TestWalksOfTwoFolders(t *testing.T) {
	for seed := range 4 {
		home := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s := &stack{T: t, home: home, dirs: []string{filepath.Join(home, "usr"), filepath.Join(home, "etc")}}
			w := &walker{stack: s, rand: rand.New(rand.NewPCG(uint64(seed), 1)), away: map[string]bool{}, desired: map[string]string{}, recorded: map[string]bool{},
				files: map[string]map[string]string{"usr": {}, "etc": {}}, counts: map[string]map[string]string{"usr": {}, "etc": {}}}
			for _, dir := range s.dirs {
				must(t, os.Mkdir(dir, 0o755))
			}
			s.start()
			for range 40 {
				w.step()
			}
			s.quit()
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(w.trace, "\n"))
			}
		})
	}
}

// step makes one step, and checks what follows from it.
func (w *walker) step() {
	if w.Failed() {
		return
	}
	steps := []func() string{w.put, w.put, w.put, w.drop, w.mask, w.leaveOrReturn, w.anotherAgent}
	w.all = nil
	said := steps[w.rand.IntN(len(steps))]()
	if said == "" {
		return
	}
	w.trace = append(w.trace, said)
	before := w.desired
	w.expectNow()
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	w.collect()
	w.trace = append(w.trace, fmt.Sprint("  ", w.desired))
	if got := w.pods(w.last); !maps.Equal(got, w.desired) {
		w.Errorf("after %s desired is %v, want %v", said, got, w.desired)
	}
	for _, one := range w.all {
		w.between(said, before, w.pods(one))
	}
}

// between checks a snapshot on the way.
func (w *walker) between(said string, before, now map[string]string) {
	for _, name := range []string{"p", "q", "r"} {
		if now[name] != before[name] && now[name] != w.desired[name] {
			w.Errorf("while %s %s is %q, between %q and %q", said, name, now[name], before[name], w.desired[name])
		}
	}
}

// pods are the pods of a snapshot, as desired has them.
func (w *walker) pods(s manifests.Snapshot) map[string]string {
	all := map[string]string{}
	for _, p := range s.Pods {
		all[p.Name] = p.Spec.Containers[0].Image + "@" + filepath.Base(filepath.Dir(p.File))
	}
	return all
}

// expectNow sets what must be desired.
func (w *walker) expectNow() {
	for _, dir := range []string{"usr", "etc"} {
		if !w.away[dir] {
			w.counts[dir] = w.given(dir)
		}
	}
	w.unread = w.unread && w.away["usr"]
	next, masked := map[string]string{}, w.masked()
	for _, name := range []string{"p", "q", "r"} {
		low, high := w.counts["usr"][name], w.counts["etc"][name]
		isUnknown := low != "" && w.unread && !w.inherits[name] // what it is, this agent does not know
		w.recorded[name] = isUnknown && w.recorded[name] || !isUnknown && low != "" && !masked[name] && high != ""
		switch {
		case high != "":
			next[name] = high + "@etc"
		case isUnknown:
			if w.recorded[name] && w.desired[name] != "" {
				next[name] = w.desired[name]
			}
		case low != "" && !masked[name]:
			next[name] = low + "@usr"
		}
	}
	w.desired = next
}

// masked are the pods of the lower folder whose files the higher one masks, or did when it was there
// last.
func (w *walker) masked() map[string]bool {
	all := map[string]bool{}
	for name, image := range w.files["etc"] {
		all[podIn["usr"][name]] = image == ""
	}
	return all
}

// given is what a folder gives that is there.
func (w *walker) given(dir string) map[string]string {
	all := map[string]string{}
	for name, image := range w.files[dir] {
		by, is := w.files["etc"][name]
		if image != "" && !(dir == "usr" && is && by == "") {
			all[podIn[dir][name]] = image
		}
	}
	return all
}

func (w *walker) somewhere() (dir, name string) {
	dirs := slices.DeleteFunc([]string{"usr", "etc"}, func(dir string) bool { return w.away[dir] })
	if len(dirs) == 0 {
		return "", ""
	}
	return dirs[w.rand.IntN(len(dirs))], []string{"a", "b", "c"}[w.rand.IntN(3)]
}

func (w *walker) put() string {
	dir, name := w.somewhere()
	if dir == "" {
		return ""
	}
	w.n++
	w.files[dir][name] = fmt.Sprint("v", w.n)
	w.write(dir+"/"+name+".yaml", pod(podIn[dir][name], w.files[dir][name]))
	return fmt.Sprintf("%s/%s gives %s %s", dir, name, podIn[dir][name], w.files[dir][name])
}

func (w *walker) drop() string {
	dir, name := w.somewhere()
	if _, is := w.files[dir][name]; !is {
		return ""
	}
	delete(w.files[dir], name)
	w.remove(dir + "/" + name + ".yaml")
	return fmt.Sprintf("%s/%s is removed", dir, name)
}

func (w *walker) mask() string {
	_, name := w.somewhere()
	if w.away["etc"] || name == "" {
		return ""
	}
	path := w.path("etc/" + name + ".yaml")
	gives := strings.HasSuffix(w.desired[podIn["etc"][name]], "@etc") // to be emptied would be an accident
	if gives || w.files["etc"][name] != "" || w.rand.IntN(2) == 0 {
		must(w.T, os.Symlink("/dev/null", path+".link"))
		must(w.T, os.Rename(path+".link", path))
	} else {
		w.write("etc/"+name+".yaml", "")
	}
	w.files["etc"][name] = ""
	return "etc/" + name + " masks"
}

func (w *walker) leaveOrReturn() string {
	dir := []string{"usr", "etc"}[w.rand.IntN(2)]
	w.away[dir] = !w.away[dir]
	if w.away[dir] {
		w.stack.away(dir)
		return dir + " is away"
	}
	w.back(dir)
	return dir + " is back"
}

func (w *walker) anotherAgent() string {
	w.unread, w.inherits = w.away["usr"], map[string]bool{}
	for name, what := range w.desired {
		image, isHigh := strings.CutSuffix(what, "@etc")
		w.inherits[name] = !isHigh
		if isHigh && w.away["etc"] { // a pod that ran is its file's, until that can be read
			w.counts["etc"][name] = image
		}
	}
	w.restart()
	return "another agent starts"
}
