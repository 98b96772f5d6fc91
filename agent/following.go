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
	pods    *records
	every   func(*v1.Pod) time.Duration // how often tags are checked; 0: never
	running *sync.WaitGroup
	found   chan tagsFound

	all []*podRecord // those with tags, and some that had some
}

// tags is what is known of the tags that a pod follows.
type tags struct {
	refs    map[string]string // references to the images that they mean, by name; one that is missing is not known yet
	given   *manifests.Pod    // the version as its manifest gives it
	version *manifests.Pod    // the same with refs
	asks    time.Time         // when the registries are asked next
	looks   bool              // the images that the runtime has are to be looked at
	checks  bool              // a check runs
	failed  map[string]bool   // the names whose last check failed
}

// tagsFound is the result of a check.
type tagsFound struct {
	record *podRecord
	tags   *tags
	asked  bool              // of the registries
	moved  map[string]string // what tags mean that have moved
	failed map[string]error
}

const (
	firstCheck   = 10 * time.Minute // the first check is within this time, at random: all agents of a site may start at once
	checkAgain   = time.Minute      // after one that failed for want of the runtime
	tagMoved     = "TagMoved"       // reasons of events
	tagUnchecked = "TagNotChecked"
)

// given returns the version of a pod that its manifest gives, with the images that its tags mean.
// accepted is the version whose tags previous agents followed; nil: none.
func (f *following) given(r *podRecord, p, accepted *manifests.Pod) *manifests.Pod {
	if !f.follows(p) {
		f.drop(r)
		return p
	}
	if r.tags == nil {
		first := rand.N(min(f.every(p.Pod), firstCheck))
		r.tags = &tags{refs: map[string]string{}, failed: map[string]bool{}, asks: time.Now().Add(first), looks: true}
		if accepted != nil {
			maps.Copy(r.tags.refs, annotations.TagImagesOf(accepted.Pod))
		}
		f.all = append(f.all, r)
	}
	return r.tags.of(p)
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
	for name := range r.tags.failed {
		f.store.SetProblem(problemOf(r.Key, name), "")
	}
	r.tags = nil
}

// of returns a version as its manifest gives it, with what is known of its tags. The same version
// gives the same object.
func (t *tags) of(p *manifests.Pod) *manifests.Pod {
	if p != t.given {
		t.refs = t.refsOf(p) // the manifest may name other images than before
		t.given, t.version = p, withTags(p, t.refs)
	}
	return t.version
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

// isKnown reports whether it is known what all tags mean.
func (t *tags) isKnown() bool { return t == nil || len(t.refs) == len(tagsOf(t.given.Pod)) }

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

// set records what tags mean.
func (t *tags) set(refs map[string]string) {
	maps.Copy(t.refs, refs)
	p := t.given
	t.given = nil
	t.of(p)
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
// reports whether there is any news.
func (f *following) learn(r *podRecord) (isNews bool) {
	p, t := r.sent.Pod, r.tags
	if t.isKnown() || p == nil || !manifests.Same(p, r.Offered) || !r.Proof.Knows(p) {
		return false
	}
	st, known := f.store.Pod(r.Key.String())
	if !known || st.UID != p.UID {
		return false
	}
	news := update.RanByName(p.Pod, &st.Status)
	maps.DeleteFunc(news, func(name, _ string) bool { return t.refs[name] != "" || !image.IsTag(name) })
	if len(news) > 0 {
		t.set(news)
	}
	return len(news) > 0
}

// imagesCame has the tags of these names checked, which may mean other images in the runtime now.
func (f *following) imagesCame(names []string) {
	for _, r := range f.all {
		if r.tags != nil && gc.Concerns(r.tags.given.Pod, names) {
			r.tags.looks = true
		}
	}
}

// check looks in the background what the tags of a pod mean now, if that is due.
func (f *following) check(ctx context.Context, r *podRecord) {
	t := r.tags
	out := tagsFound{record: r, tags: t, asked: !time.Now().Before(t.asks)}
	if t.checks || !t.looks && !out.asked || len(t.refs) == 0 || !f.shared.Watch.Up() {
		return
	}
	t.looks, t.checks = false, true
	refs, p := maps.Clone(t.refs), t.given.Pod
	f.running.Go(func() {
		f.lookUp(ctx, &out, p, refs)
		select {
		case f.found <- out:
		case <-ctx.Done():
		}
	})
}

// lookUp looks what tags mean now; refs is what they meant.
func (f *following) lookUp(ctx context.Context, out *tagsFound, p *v1.Pod, refs map[string]string) {
	recorder := &podevents.Recorder{Events: f.shared.Events, Key: out.record.Key, Machine: f.shared.Disk.Machine}
	secrets := recorder.PullSecrets(p, f.shared.Disk.Objects.Now(), f.shared.Log)
	out.moved, out.failed = map[string]string{}, map[string]error{}
	for name, was := range refs {
		r := image.Request{Pod: string(p.UID), Image: name, Secrets: secrets}
		now, err := f.shared.Images.Moved(ctx, r, was, out.asked)
		switch {
		case err != nil:
			out.failed[name] = err
		case now != "":
			out.moved[name] = now
		}
	}
}

// take records the result of a check. It reports whether there is another version of the pod.
func (f *following) take(out *tagsFound) bool {
	r, t := out.record, out.tags
	if r.tags != t { // it is another pod, or follows no tags any more
		return false
	}
	t.checks = false
	if out.asked {
		t.asks = time.Now().Add(f.nextIn(r, out))
	}
	for name := range t.refs {
		f.tell(r, name, out)
	}
	maps.DeleteFunc(out.moved, func(name, _ string) bool { return t.refs[name] == "" }) // the manifest has changed meanwhile
	if len(out.moved) > 0 {
		t.set(out.moved)
	}
	return len(out.moved) > 0
}

// nextIn returns after what time the registries are asked next: some do it earlier and some later,
// so that the machines of a site do not ask together.
func (f *following) nextIn(r *podRecord, out *tagsFound) time.Duration {
	for _, err := range out.failed {
		if cri.Unavailable(err) {
			return checkAgain
		}
	}
	every := f.every(r.tags.given.Pod)
	return every - every/10 + rand.N(every/5)
}

// tell reports that a tag has moved, or could not be checked, or could again.
func (f *following) tell(r *podRecord, name string, out *tagsFound) {
	t, about := r.tags, events.About(r.about())
	now, err := out.moved[name], out.failed[name]
	switch {
	case err != nil && !cri.Unavailable(err):
		text := fmt.Sprintf("image %s of pod %s runs on as it is: whether its tag has moved could not be checked: %s; next try about %s",
			name, r.Key, wordsOf(err), t.asks.Local().Format("15:04"))
		f.store.SetProblem(problemOf(r.Key, name), text)
		if !t.failed[name] {
			f.shared.Events.Record(about, v1.EventTypeWarning, tagUnchecked, message.Private(text))
			f.shared.Log.Warn("tag not checked", "pod", r.Key.String(), "image", name, "err", err)
		}
		t.failed[name] = true
		return
	case now != "":
		text := fmt.Sprintf("tag %s means another image: %s, before %s", name, now, t.refs[name])
		f.shared.Events.Record(about, v1.EventTypeNormal, tagMoved, message.Private(text))
		f.shared.Log.Info("tag has moved", "pod", r.Key.String(), "image", name, "now", now, "before", t.refs[name])
	}
	if err == nil && t.failed[name] && out.asked {
		delete(t.failed, name)
		f.store.SetProblem(problemOf(r.Key, name), "")
	}
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
