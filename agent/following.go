package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/events"
	"monopod/agent/gc"
	"monopod/agent/image"
	"monopod/agent/message"
	"monopod/agent/panics"
	"monopod/agent/podevents"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/worker"
	"monopod/cri"
	"monopod/manifests"
	"monopod/manifests/annotations"
	"monopod/manifests/poduid"
)

// following has pods follow the tags of their images. A version of such a pod says which images its
// tags mean, first those that it runs; when a tag has moved, another version of the pod is given, as
// if its manifest had changed. It belongs to the sync loop's goroutine.
type following struct {
	shared  *worker.Pool
	store   *status.Store
	every   func(*v1.Pod) time.Duration // how often tags are checked; 0: never
	running *sync.WaitGroup
	found   chan tagsFound

	all    []*podRecord // those with tags, and some that had some
	asking int          // checks of registries that run
}

// tags is what is known of the tags that a pod follows.
type tags struct {
	refs    map[string]string // references to the images that they mean, by name; one that is missing is not known yet
	given   *manifests.Pod    // the version as its manifest gives it
	version *manifests.Pod    // the same with refs
	asks    time.Time         // when the registries are asked next
	wants   bool              // the images that the runtime has are to be looked at
	learned bool              // refs are those that run, and the worker has not reported version yet
	looking bool              // that is being done
	stop    func()            // ends the check of the registries that runs; nil: none does
	failed  map[string]bool   // the names whose last check failed
}

// tagsFound is the result of a check.
type tagsFound struct {
	record *podRecord
	tags   *tags
	asked  bool              // of the registries, else of the runtime
	was    map[string]string // what the tags meant
	moved  map[string]string // what those mean that have moved
	failed map[string]error
}

const (
	firstCheck   = 10 * time.Minute // the first check is within this time, at random: all agents of a site may start at once
	checkAgain   = time.Minute      // after one that failed for want of the runtime
	mostChecks   = 2                // of registries at the same time: one may hang for as long as a pull may
	tagMoved     = "TagMoved"       // reasons of events
	tagUnchecked = "TagNotChecked"
)

// given returns the version of a pod that its manifest gives, with the images that its tags mean.
// before are versions that say what tags meant before, the last one first.
func (f *following) given(r *podRecord, p *manifests.Pod, before ...*manifests.Pod) *manifests.Pod {
	switch {
	case annotations.IsRestored(p.Pod): // no manifest gives it: it replaces a version that failed
		return p
	case !f.follows(p):
		f.drop(r)
		return p
	}
	if r.tags == nil {
		first := rand.N(min(f.every(p.Pod), firstCheck))
		r.tags = &tags{refs: map[string]string{}, failed: map[string]bool{}, asks: time.Now().Add(first)}
		f.all = append(f.all, r)
	}
	if p != r.tags.given {
		r.tags.give(p, before)
		f.forgive(r, func(name string) bool { return slices.Contains(tagsOf(p.Pod), name) })
	}
	return r.tags.version
}

// follows reports whether a version follows tags.
func (f *following) follows(p *manifests.Pod) bool {
	return f.every != nil && f.every(p.Pod) > 0 && p.Spec.RestartPolicy == v1.RestartPolicyAlways && len(tagsOf(p.Pod)) > 0
}

// tagsOf returns the images that a pod names by tags.
func tagsOf(p *v1.Pod) []string {
	return slices.DeleteFunc(annotations.ImageNames(p), func(name string) bool { return !image.IsTag(name) })
}

// drop forgets the tags of a pod.
func (f *following) drop(r *podRecord) {
	if r.tags == nil {
		return
	}
	f.forgive(r, func(string) bool { return false })
	if r.tags.stop != nil {
		r.tags.stop()
	}
	r.tags = nil
}

// forgive forgets the failures of all tags but some.
func (f *following) forgive(r *podRecord, but func(name string) bool) {
	for name := range r.tags.failed {
		if !but(name) {
			delete(r.tags.failed, name)
			f.store.SetProblem(problemOf(r.Key, name), "")
		}
	}
}

// give takes over another version of the manifest. Tags that the one before did not name mean what
// they meant in versions before; what the runtime has by now is looked at.
func (t *tags) give(p *manifests.Pod, before []*manifests.Pod) {
	for _, was := range before {
		for name, ref := range annotations.TagImagesOf(was.Pod) {
			if t.refs[name] == "" {
				t.refs[name] = ref
			}
		}
	}
	t.refs = t.refsOf(p)
	t.given, t.version, t.wants, t.learned = p, withTags(p, t.refs), true, false
}

// set records what tags mean.
func (t *tags) set(refs map[string]string) {
	maps.Copy(t.refs, refs)
	t.version = withTags(t.given, t.refs)
}

// refsOf returns what is known of the tags of a version.
func (t *tags) refsOf(p *manifests.Pod) map[string]string {
	refs := map[string]string{}
	for _, name := range tagsOf(p.Pod) {
		if ref := t.refs[name]; ref != "" {
			refs[name] = ref
		}
	}
	return refs
}

// withTags returns a version with what its tags mean. Its uid follows from that, too, unless the
// manifest sets it.
func withTags(p *manifests.Pod, refs map[string]string) *manifests.Pod {
	if len(refs) == 0 {
		return p
	}
	out := *p
	out.Pod = annotations.WithTagImages(p.Pod, refs)
	if poduid.IsComputed(p.UID) {
		out.UID = types.UID(poduid.Derived(string(p.UID), out.Annotations[annotations.TagImages]))
	}
	out.Digest = manifests.Restored(out.Pod)
	return &out
}

// versions returns the versions of the pods that follow tags.
func (f *following) versions() (all []*manifests.Pod) {
	for _, r := range f.all {
		if r.tags != nil {
			all = append(all, r.tags.version)
		}
	}
	return all
}

// tick learns which images run, and starts the checks that are due. It returns the pods of which
// there is another version.
func (f *following) tick(ctx context.Context) (changed []*podRecord) {
	f.all = slices.DeleteFunc(f.all, func(r *podRecord) bool { return r.tags == nil })
	for _, r := range f.all {
		if f.learn(r) {
			changed = append(changed, r)
		}
		f.check(ctx, r)
	}
	return changed
}

// learn records which images a pod runs, for the tags of which it is not known what they mean. It
// reports whether there is any news. A version that has failed is not offered again for that.
func (f *following) learn(r *podRecord) (isNews bool) {
	p, t := r.sent.Pod, r.tags
	if len(t.refs) == len(tagsOf(t.given.Pod)) || p == nil || !manifests.Same(p, r.Offered) || r.Trial.IsBack(r.Offered) || !r.Proof.Knows(p) {
		return false
	}
	st, known := f.store.Pod(r.Key.String())
	if !known || st.UID != p.UID {
		return false
	}
	news := update.RanByName(p.Pod, &st.Status)
	maps.DeleteFunc(news, func(name, ref string) bool { return t.refs[name] != "" || !image.IsTag(name) || !image.IsExact(ref) })
	if len(news) == 0 {
		return false
	}
	t.set(news)
	t.learned, r.Given = true, t.version
	return true
}

// imagesCame has the tags of these names looked at, which may mean other images in the runtime now.
func (f *following) imagesCame(names []string) {
	for _, r := range f.all {
		if r.tags != nil && gc.Concerns(r.tags.given.Pod, names) {
			r.tags.wants = true
		}
	}
}

// check starts the checks of a pod's tags that are due.
func (f *following) check(ctx context.Context, r *podRecord) {
	t := r.tags
	every := f.every(t.given.Pod)
	if every > 0 && time.Until(t.asks) > every+every/10 { // it is to be checked more often now
		t.asks = time.Now().Add(rand.N(min(every, firstCheck)))
	}
	t.learned = t.learned && !r.Proof.Knows(t.version) // until then the worker takes another version for the first that says so
	if len(t.refs) == 0 || t.learned || !f.shared.Watch.Up() {
		return
	}
	if t.wants && !t.looking {
		t.wants, t.looking = false, true
		f.start(ctx, ctx, r, false)
	}
	if t.stop == nil && f.asking < mostChecks && !time.Now().Before(t.asks) {
		own, stop := context.WithCancel(ctx)
		t.stop = stop
		f.asking++
		f.start(ctx, own, r, true)
	}
}

// start looks in the background what the tags of a pod mean now, until own ends.
func (f *following) start(ctx, own context.Context, r *podRecord, asks bool) {
	out := tagsFound{record: r, tags: r.tags, asked: asks, was: maps.Clone(r.tags.refs)}
	p := r.tags.given.Pod
	f.running.Go(func() {
		fault := panics.Contain(func() { f.lookUp(own, &out, p) })
		if fault != nil {
			f.shared.Metrics.Panic()
			f.shared.Log.Error("tags not checked", panics.Logged(fault)...)
			out.moved, out.failed = nil, map[string]error{}
			for name := range out.was {
				out.failed[name] = fault
			}
		}
		select {
		case f.found <- out:
		case <-ctx.Done():
		}
	})
}

// lookUp looks what tags mean now.
func (f *following) lookUp(ctx context.Context, out *tagsFound, p *v1.Pod) {
	var secrets []*v1.Secret
	if out.asked {
		recorder := &podevents.Recorder{Events: f.shared.Events, Key: out.record.Key, Machine: f.shared.Disk.Machine}
		secrets = recorder.PullSecrets(p, f.shared.Disk.Objects.Now(), f.shared.Log)
	}
	out.moved, out.failed = map[string]string{}, map[string]error{}
	for name, was := range out.was {
		r := image.Request{Pod: string(p.UID), Image: name, Secrets: secrets}
		now, err := f.shared.Images.Moved(ctx, r, was, out.asked && mayPull(p, name))
		switch {
		case err != nil:
			out.failed[name] = err
		case now != "":
			out.moved[name] = now
		}
	}
}

// mayPull reports whether a pod wants an image to be pulled that it names.
func mayPull(p *v1.Pod, name string) bool {
	pulls := func(c v1.Container) bool { return c.Image == name && c.ImagePullPolicy != v1.PullNever }
	return slices.ContainsFunc(p.Spec.Containers, pulls) || slices.ContainsFunc(p.Spec.InitContainers, pulls) ||
		slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool {
			return v.Image != nil && v.Image.Reference == name && v.Image.PullPolicy != v1.PullNever
		})
}

// take records the result of a check. It reports whether there is another version of the pod.
func (f *following) take(out *tagsFound) bool {
	r, t := out.record, out.tags
	if out.asked {
		f.asking--
		t.stop()
		t.stop = nil
	} else {
		t.looking = false
	}
	if r.tags != t { // it is another pod, or follows no tags any more
		return false
	}
	f.schedule(r, out)
	for name, was := range out.was {
		if t.refs[name] != was { // the other check was faster, or the manifest has changed
			delete(out.moved, name)
			t.wants = true
			continue
		}
		f.tell(r, name, out)
	}
	if len(out.moved) == 0 {
		return false
	}
	t.set(out.moved)
	r.Given = t.version
	return true
}

// schedule sets when the next check is, after one: some ask the registries earlier and some later,
// so that the machines of a site do not ask together.
func (f *following) schedule(r *podRecord, out *tagsFound) {
	t, every := r.tags, f.every(r.tags.given.Pod)
	next := every - every/10 + rand.N(every/5+1)
	for _, err := range out.failed {
		if cri.Unavailable(err) {
			t.wants, next = true, checkAgain
		}
	}
	if out.asked {
		t.asks = time.Now().Add(next)
	}
}

// tell reports that a tag has moved, or could not be checked, or could again.
func (f *following) tell(r *podRecord, name string, out *tagsFound) {
	t, about := r.tags, events.About(r.about())
	now, err := out.moved[name], out.failed[name]
	switch {
	case err != nil && !cri.Unavailable(err):
		f.tellFailure(r, name, err)
	case now != "":
		text := fmt.Sprintf("tag %s means another image: %s, before %s", name, now, t.refs[name])
		f.shared.Events.Record(about, v1.EventTypeNormal, tagMoved, message.Private(text))
		f.shared.Log.Info("tag has moved", "pod", r.Key.String(), "image", name, "now", now, "before", t.refs[name])
	}
	if err == nil && out.asked {
		f.forgive(r, func(other string) bool { return other != name })
	}
}

func (f *following) tellFailure(r *podRecord, name string, err error) {
	t := r.tags
	text := fmt.Sprintf("image %s of pod %s runs on as it is: whether its tag has moved could not be checked: %s; next try about %s",
		name, r.Key, wordsOf(err), t.asks.Local().Format("15:04"))
	f.store.SetProblem(problemOf(r.Key, name), text)
	if !t.failed[name] {
		f.shared.Events.Record(events.About(r.about()), v1.EventTypeWarning, tagUnchecked, message.Private(text))
		f.shared.Log.Warn("tag not checked", "pod", r.Key.String(), "image", name, "err", err)
	}
	t.failed[name] = true
}

func problemOf(key manifests.Key, name string) string { return "tag " + name + " of " + key.String() }

// wordsOf returns the text of an error for people.
func wordsOf(err error) string {
	var e *image.Error
	if errors.As(err, &e) {
		return e.Words()
	}
	return err.Error()
}
