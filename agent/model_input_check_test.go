package agent

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/pleg"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// hint records what a file says, or would if it were whole.
func (w *inputWalk) hint(file string, p *paper) {
	if w.hints[file] == nil {
		w.hints[file] = map[string]bool{}
	}
	for _, d := range p.docs {
		w.hints[file][d.name] = true
	}
}

// fate is what must be of a pod now that all that is there was read.
type fate int

const (
	mustGo   fate = iota // it is proven gone
	mayRun               // what proves what came too close together
	mustStay             // nothing gives it, and it is not proven gone
	mustRun              // something gives it
)

// running is what runs of the pods of manifests, by their names.
func (w *inputWalk) running() map[string]run {
	owners := map[string]string{}
	for _, f := range w.store.Manifests().Files {
		for _, pod := range f.Pods {
			owners[strings.TrimSuffix(strings.TrimPrefix(pod, "default/"), "-n")] = f.Path
		}
	}
	now := map[string]run{}
	for _, c := range w.Containers() {
		if c.State == rt.ContainerState_CONTAINER_RUNNING {
			name := strings.TrimSuffix(c.Pod, "-n")
			owner := owners[name]
			if owner != inputURL {
				owner = filepath.Base(owner)
			}
			now[name] = run{c.ID, c.Config.Image.UserSpecifiedImage, owner}
		}
	}
	return now
}

// givers are what can be read and gives a name, with the versions.
func (w *inputWalk) givers(name string) map[string]document {
	all := map[string]document{}
	add := func(from string, p *paper) {
		d := p.says(name)
		if d != nil {
			all[from] = *d
		}
	}
	if !w.isLost() {
		for from, p := range w.papers {
			add(from, p)
		}
	}
	p, trouble := w.site.now()
	if trouble == "" || trouble == siteUnproven {
		add(inputURL, p)
	}
	return all
}

// isDoubted reports whether what the folder does not give may come from another one.
func (w *inputWalk) isDoubted() bool {
	if w.isLost() {
		return true
	}
	return w.isNew && !w.hasPods()
}

// hasPods reports whether a file gives a pod.
func (w *inputWalk) hasPods() bool {
	return slices.ContainsFunc(inputPods, func(name string) bool {
		givers := w.givers(name)
		delete(givers, inputURL)
		return len(givers) > 0
	})
}

// observe records of which pods what gives them says another thing, as that can be read now.
func (w *inputWalk) observe() {
	for file, p := range w.papers {
		w.hint(file, p)
	}
	w.found = w.found || w.hasPods() && !w.isLost()
	for _, name := range inputPods {
		for from, d := range w.givers(name) {
			w.said[name+" "+d.image] = true
			w.filed[name] = w.filed[name] || from != inputURL
			delete(w.forgot, name)
		}
	}
	for name, r := range w.ran {
		all := w.givers(name)
		own, gives := all[r.owner]
		images := map[string]bool{}
		for from, d := range all {
			if from != inputURL { // which may not have been asked yet
				images[d.image] = true
			}
		}
		isOther := len(images) > 0 && !images[r.image]
		if p := w.papers[r.owner]; !gives && len(images) > 0 && (p == nil || !p.isBad()) {
			w.moved[name] = true
		}
		switch {
		case gives && own.image != r.image:
			w.may[name] = true
		case r.owner == inputURL: // files come first, and one of them may give it
			_, trouble := w.site.now()
			w.may[name] = w.may[name] || !gives && trouble == "" || len(images) > 1 || isOther
		case !gives && images[r.image] && w.isKept(r.owner): // another file gives the same, and may say another thing later
			w.may[name] = true
		case gives, w.isLost(), w.isDoubted() && !w.found, w.papers[r.owner] != nil && w.papers[r.owner].isBad():
		case !images[r.image] || len(images) > 1:
			w.may[name] = true
		}
	}
}

// fateOf says what must be of a pod.
func (w *inputWalk) fateOf(name string) fate {
	r, ran := w.ran[name]
	_, trouble := w.site.now()
	switch {
	case len(w.givers(name)) > 0:
		return mustRun
	case w.forgot[name]:
		return mustGo
	case !ran && w.isAnythingBad():
		return mayRun
	case !ran:
		return mustGo
	case !w.may[name] && !w.moved[name] && w.isKept(r.owner):
		return mustStay
	case w.isKept(r.owner), w.isDoubted() && w.filed[name], trouble != "" && w.sited[name], w.isHidden(name):
		return mayRun
	}
	return mustGo
}

// isKept reports whether what gave a pod last cannot prove that the pod is gone.
func (w *inputWalk) isKept(owner string) bool {
	if owner == inputURL {
		_, trouble := w.site.now()
		return trouble != ""
	}
	p := w.papers[owner]
	return w.isDoubted() || p != nil && p.isBad()
}

// isHidden reports whether a spoilt file may give a pod: one that was spoilt since the last check
// any pod, another those that it named since it was well. So may what a URL answers that is no
// manifest: it may have been cut short when the pod moved there.
func (w *inputWalk) isHidden(name string) bool {
	if _, trouble := w.site.now(); trouble == siteGarbage && w.siteFell {
		return true
	}
	if w.isLost() { // what a file was when it was read last
		return slices.ContainsFunc(slices.Collect(maps.Values(w.hints)), func(names map[string]bool) bool { return names[name] })
	}
	for file, p := range w.papers {
		if p.isBad() && (w.fell[file] || w.hints[file][name] || strings.Contains(p.text, name) || w.booted && w.ran[name].owner == inputURL) {
			return true
		}
	}
	return false
}

// notePending records which versions wait for what they lack. One takes the place of the pod's former
// version once that is there, also when nothing that can be read gives it by then, or only another
// than what the pod is of.
func (w *inputWalk) notePending(now map[string]run) {
	for _, name := range inputPods {
		r, runs := now[name]
		givers := w.givers(name)
		if _, isOwn := givers[r.owner]; isOwn || !runs && len(givers) > 0 {
			delete(w.pending, name)
		}
		p, _ := w.site.now()
		if d := p.says(name); d != nil { // it counts, too, while the URL misbehaves
			givers[inputURL] = *d
		}
		for _, d := range givers {
			if runs && d.image != r.image && w.lacks(name, now) {
				w.pending[name] = append(w.pending[name], d.image)
			}
		}
	}
	for name, images := range w.pending {
		w.may[name] = true
		for _, image := range images {
			w.said[name+" "+image] = true
		}
	}
}

// noteMissing records that a file which was spoilt since the last check may give what runs and
// nothing gives: it may have moved there.
func (w *inputWalk) noteMissing(now map[string]run) {
	for name := range now {
		if len(w.givers(name)) > 0 {
			continue
		}
		for file := range w.fell {
			if p := w.papers[file]; p != nil && p.isBad() {
				w.hint(file, p)
				w.hints[file][name] = true
			}
		}
	}
}

func (w *inputWalk) isAnythingBad() bool {
	_, trouble := w.site.now()
	return trouble != "" || w.isDoubted() || slices.ContainsFunc(slices.Collect(maps.Values(w.papers)), (*paper).isBad)
}

// untouched checks that what has no reason to end runs.
func (w *inputWalk) untouched() {
	w.Helper()
	w.isAlone()
	if !w.up {
		return
	}
	now := w.running()
	for name, was := range w.ran {
		if r := now[name]; was.id != "" && !w.may[name] && !w.forgot[name] && r.id != was.id {
			w.Fatalf("%s ran as %+v, nothing that can be read says another thing, and now runs %+v", name, was, r)
		}
	}
}

func (w *inputWalk) isAlone() {
	w.Helper()
	if twice := w.DoubleRunning(); len(twice) > 0 {
		w.Fatalf("ran twice at a time: %v", twice)
	}
}

// check lets all be read, and checks what runs.
func (w *inputWalk) check() {
	w.Helper()
	if !w.up {
		w.launch()
	}
	w.after(inputRest)
	w.isAlone()
	now := w.running()
	for _, name := range inputPods {
		w.checkPod(name, now)
	}
	for name := range now {
		if !slices.Contains(inputPods, name) {
			w.Fatalf("%s runs, which no source has ever given", name)
		}
	}
	w.isSaid()
	for name := range w.forgot {
		if _, runs := now[name]; !runs {
			delete(w.forgot, name)
		}
	}
	w.ran = now
	clear(w.may)
	clear(w.said)
	clear(w.filed)
	clear(w.moved)
	w.notePending(now)
	w.booted = false
	if !w.isLost() {
		w.noteMissing(now)
		clear(w.fell)
		w.siteFell = false
		w.isNew = w.isNew && !w.hasPods()
		maps.DeleteFunc(w.hints, func(file string, _ map[string]bool) bool { return w.papers[file] == nil || !w.papers[file].isBad() })
	}
	w.observe() // what is there is there still
	p, trouble := w.site.now()
	if trouble == "" {
		clear(w.sited)
		w.gives(p)
	}
	w.note("checked")
}

// checkPod checks what runs of one pod.
func (w *inputWalk) checkPod(name string, now map[string]run) {
	w.Helper()
	r, runs := now[name]
	was, ran := w.ran[name]
	v, givers := w.fateOf(name), w.givers(name)
	lacks := v == mustRun && w.lacks(name, now)
	switch {
	case v == mustGo && runs:
		w.Fatalf("%s runs, and nothing gives it: %+v", name, r)
	case v == mustRun && !runs && !lacks, v >= mustStay && ran && !runs && !w.may[name]:
		w.Fatalf("%s does not run: it ran as %+v, and is given by %v", name, was, givers)
	case v == mustRun && !runs:
		w.isExplained(name)
	}
	if !runs || v == mayRun {
		return
	}
	if ran && was.id != "" && was.id != r.id && !w.may[name] {
		w.Fatalf("%s runs as %+v, and ran as %+v without a reason to restart; it is given by %v", name, r, was, givers)
	}
	own, gives := givers[r.owner]
	switch {
	case gives && own.image != r.image && !lacks:
		w.Fatalf("%s runs as %+v, and its file says %s", name, r, own.image)
	case !gives && ran && r.image != was.image && !w.said[name+" "+r.image]:
		w.Fatalf("%s runs as %+v, which is neither given, by %v, nor what ran: %+v", name, r, givers, was)
	}
}

// lacks reports whether what a pod needs may be missing.
func (w *inputWalk) lacks(name string, now map[string]run) bool {
	if name == "gnu" {
		_, runs := now["ant"]
		return !runs
	}
	need := inputNeeds[name]
	return need != "" && len(w.givers(need)) == 0
}

// isExplained checks that a pod that waits says why.
func (w *inputWalk) isExplained(name string) {
	w.Helper()
	p, there := w.store.Pod("default/" + name + "-n")
	if there && slices.ContainsFunc(p.Status.ContainerStatuses, func(c v1.ContainerStatus) bool {
		return saysWhy(&manifests.Pod{Pod: p}, &p.Status, &c)
	}) {
		return
	}
	for _, f := range w.store.Manifests().Files {
		if slices.ContainsFunc(f.Problems, func(p status.Problem) bool { return p.Pod == "default/"+name+"-n" }) {
			return
		}
	}
	w.Fatalf("%s waits and does not say for what: %v", name, p)
}

// isSaid checks that what is wrong with the inputs is told, and nothing that is not.
func (w *inputWalk) isSaid() {
	w.Helper()
	m := w.store.Manifests()
	said := map[string]bool{}
	for _, f := range m.Files {
		for _, p := range f.Problems {
			said[f.Path] = said[f.Path] || !p.Warning || f.Path == inputURL
		}
	}
	for name, p := range w.papers {
		if path := filepath.Join(w.folder, name); p.isBad() && !isNone(p.trouble) && !w.isLost() && !said[path] {
			w.Fatalf("it is not said that %s is wrong: %s", name, p)
		}
	}
	if _, trouble := w.site.now(); trouble != "" && trouble != siteUnproven && !said[inputURL] {
		w.Fatalf("it is not said that the URL is wrong: %s", trouble)
	}
	if w.isLost() && w.at != "an empty directory" && len(m.Problems) == 0 {
		w.Fatalf("it is not said that the folder is away: %s", w.at)
	}
}

// calm mends all, and checks that what runs is what the inputs say, and that the agent rests.
func (w *inputWalk) calm() {
	w.Helper()
	w.note("all is mended")
	w.findFolder()
	for _, name := range slices.Sorted(maps.Keys(w.papers)) {
		if p := w.papers[name]; p.isBad() {
			w.put(name, newPaper(p.docs))
		}
	}
	w.mendSite()
	w.observe()
	if w.isNew && !w.hasPods() { // another directory without a manifest is none
		w.put("a.yaml", newPaper([]document{{name: "bee", image: "img:1"}}))
	}
	w.observe()
	w.check()
	w.isSettled()
	w.ForgetCalls()
	w.after(10 * pleg.RelistWithEvents)
	if n := w.made() + w.Count("StopContainer") + w.Count("RemoveContainer") + w.Count("StopPodSandbox") + w.Count("RemovePodSandbox"); n > 0 {
		w.Fatalf("%d calls although all is well", n)
	}
	if n := w.Count("ListContainers") + w.Count("ListPodSandbox"); n > 25+30*w.waiting() {
		w.Fatalf("%d calls at rest in %s", n, 10*pleg.RelistWithEvents)
	}
	w.note("all is well")
}

// waiting is how many pods do not run that something gives: what they lack is asked for again.
func (w *inputWalk) waiting() (n int) {
	for _, name := range inputPods {
		if _, runs := w.ran[name]; !runs && len(w.givers(name)) > 0 {
			n++
		}
	}
	return n
}

// isSettled checks that what waits for nothing that is missing runs, and no error is told but that
// several files give a name.
func (w *inputWalk) isSettled() {
	w.Helper()
	m := w.store.Manifests()
	for _, p := range m.Problems {
		w.Fatalf("a problem of a folder that is well: %v", p)
	}
	for _, f := range m.Files {
		for _, p := range f.Problems {
			isTwice, isLacking := strings.Contains(p.Message, "already: remove one of the two"), p.Waits || p.Field == annotations.StartAfterField
			if !p.Warning && !isTwice && !isLacking {
				w.Fatalf("a problem of a file that is well: %v", p)
			}
		}
	}
	if w.isAnythingBad() {
		return
	}
	for _, b := range w.Sandboxes() {
		if name := strings.TrimSuffix(b.Name, "-n"); len(w.givers(name)) == 0 && time.Since(b.Created) > inputRest {
			w.Fatalf("%s has a sandbox, and nothing gives it", name)
		}
	}
}
