package manifests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"monopod/manifests/documents"
	"monopod/manifests/poduid"
)

// ErrUnknown means that no pod or object of that name is desired.
var ErrUnknown = errors.New("not known")

// WantedError means that a pod or an object cannot be forgotten because a manifest gives it.
type WantedError struct{ File string }

func (e *WantedError) Error() string {
	if IsURL(e.File) {
		return fmt.Sprintf("%s gives it: remove it there", e.File)
	}
	return fmt.Sprintf("its manifest is %s: remove that file", e.File)
}

// forgetting is a call of Forget or ForgetObject, sent to the goroutine in Run.
type forgetting struct {
	do     func(now time.Time) error // does nothing once the caller's context has ended
	answer chan error                // has room for one answer
}

// Forget confirms on the owner's request that a pod is gone whose last good version keeps running
// although no manifest gives it. It returns once this is saved: no later snapshot has the pod until
// a manifest gives it again. Errors are ErrUnknown, a *WantedError, and those of Save and of ctx.
func (s *Source) Forget(ctx context.Context, key Key) error {
	return s.ask(ctx, func(now time.Time) error { return s.forget(ctx, key, now) })
}

// ForgetObject is Forget for a ConfigMap or Secret; it also returns the errors of SaveObjects.
func (s *Source) ForgetObject(ctx context.Context, key ObjectKey) error {
	return s.ask(ctx, func(now time.Time) error { return s.forgetObject(ctx, key, now) })
}

// ask runs do in the goroutine in Run and returns its error.
func (s *Source) ask(ctx context.Context, do func(now time.Time) error) error {
	f := forgetting{do, make(chan error, 1)}
	select {
	case s.forgets <- f:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-f.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// forget reads the folder first, so that it decides by its present content.
func (s *Source) forget(ctx context.Context, key Key, now time.Time) error {
	s.full = true
	s.step(now)
	if ctx.Err() != nil || s.asking.isStopped() {
		return cmp.Or(context.Cause(ctx), context.Canceled)
	}
	pod := s.current[key]
	if pod == nil {
		return ErrUnknown
	}
	if err := s.wanted(func(f *fileState) bool { return f.gives(key) }); err != nil {
		return err
	}
	if err := s.recordForgotten(key.String(), poduid.HashOf(pod.Pod)); err != nil {
		return err
	}
	delete(s.current, key)
	for path, f := range s.files {
		if !IsURL(path) && f.gives(key) { // a URL's next answer shows whether it still gives the pod
			f.Pods = slices.DeleteFunc(slices.Clone(f.Pods), func(p documents.Found) bool { return p.Key() == key })
			f.lost()
		}
	}
	s.step(now)
	return nil
}

// forgetObject is forget for an object.
func (s *Source) forgetObject(ctx context.Context, key ObjectKey, now time.Time) error {
	s.full = true
	s.step(now)
	if ctx.Err() != nil || s.asking.isStopped() {
		return cmp.Or(context.Cause(ctx), context.Canceled)
	}
	if s.objects[key] == nil {
		return ErrUnknown
	}
	if err := s.wanted(func(f *fileState) bool { return f.givesObject(key) }); err != nil {
		return err
	}
	if err := s.recordForgotten(key.String(), ""); err != nil {
		return err
	}
	rest := maps.Clone(s.objects)
	delete(rest, key)
	if err := s.saveObjects(sorted(rest)); err != nil {
		return err
	}
	s.objects = rest
	for path, f := range s.files {
		if !IsURL(path) && f.givesObject(key) {
			f.Objects = slices.DeleteFunc(slices.Clone(f.Objects), func(o documents.FoundObject) bool { return o.Key() == key })
			f.lost()
		}
	}
	s.step(now)
	return nil
}

// wanted returns a *WantedError if a file gives the pod or object, by the present knowledge.
func (s *Source) wanted(gives func(*fileState) bool) error {
	for _, path := range slices.Sorted(maps.Keys(s.files)) {
		if f := s.files[path]; gives(f) && !s.isOutdated(path, f) {
			return &WantedError{path}
		}
	}
	return nil
}

// recordForgotten saves that the pod or object of that name is forgotten.
func (s *Source) recordForgotten(name string, hash poduid.ContentHash) error {
	next := s.record.clone()
	next.Forgotten[name] = hash
	if err := s.save(next); err != nil {
		return err
	}
	s.record = next
	return nil
}

// isOutdated reports whether the known content of a file or URL may differ from the present one.
func (s *Source) isOutdated(path string, f *fileState) bool {
	if IsURL(path) {
		return f.stale
	}
	return len(s.folder) > 0
}

// gives reports whether the file's content has the pod.
func (f *fileState) gives(key Key) bool {
	return slices.ContainsFunc(f.Pods, func(p documents.Found) bool { return p.Key() == key })
}

// lost records that part of the content of a file in an unreadable folder was dropped, so that the
// file is read again as soon as it can be.
func (f *fileState) lost() { f.alone, f.hash, f.sig, f.plain = f.Content, "", signature{}, nil }

// recall removes from the record of forgotten pods and objects those that a manifest gives again.
func (s *Source) recall(r *resolution) {
	if len(s.record.Forgotten) == 0 {
		return
	}
	for key := range r.pods {
		delete(s.record.Forgotten, key.String())
	}
	for key := range r.objects {
		delete(s.record.Forgotten, key.String())
	}
}

// clone returns a record that shares nothing with r.
func (r Record) clone() Record {
	out := Record{Forgotten: map[string]poduid.ContentHash{}}
	if r.Folder != nil {
		folder := *r.Folder
		out.Folder = &folder
	}
	maps.Copy(out.Forgotten, r.Forgotten)
	out.Moved = maps.Clone(r.Moved)
	out.Unclear, out.Came = maps.Clone(r.Unclear), maps.Clone(r.Came)
	out.Masks, out.Folders, out.Given = slices.Clone(r.Masks), maps.Clone(r.Folders), maps.Clone(r.Given)
	return out
}

// Of returns the record of one folder, of which r may be that of several.
func (r Record) Of(dir string) Record {
	if of, ok := r.Folders[dir]; ok {
		return of
	}
	of := r.clone()
	of.Folders, of.Given = nil, nil
	return of
}

// know takes over the records of previous agents: the last good versions without the forgotten
// ones. A forgotten pod that has no last good version any more needs no record.
func (s *Source) know(pods []*Pod, r Record) {
	s.record = r.clone()
	s.saved = r.clone()
	s.turn = r.lastTurn() + 1
	if s.URL == "" { // the answer that is cached may give them
		clear(s.record.Forgotten)
	}
	for _, p := range pods {
		name := p.Key().String()
		if hash := r.Forgotten[name]; isOf(hash, p) {
			s.record.Forgotten[name] = hash
			continue
		}
		if to := r.Moved[name]; to != "" {
			p = p.In(to)
		}
		s.current[p.Key()] = p
	}
}

// noteMoved records which pods another file or URL gives than at first: after a restart only that
// one can prove them gone.
func (r *resolution) noteMoved() {
	s := r.source
	var moved map[string]string
	for key, pod := range r.pods {
		was := s.current[key]
		isMoved := was != nil && was.File != pod.File
		if !isMoved && len(s.record.Moved) == 0 {
			continue
		}
		name := key.String()
		if !isMoved && s.record.Moved[name] == "" {
			continue
		}
		if moved == nil {
			moved = map[string]string{}
		}
		moved[name] = pod.File
	}
	s.record.Moved = moved
}

// isOf reports whether the recorded hash of a forgotten pod is p's. Former agents recorded the uid
// of some pods.
func isOf(hash poduid.ContentHash, p *Pod) bool {
	return hash != "" && (hash == poduid.HashOf(p.Pod) || hash == poduid.ContentHash(p.UID))
}
