package manifests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"monopod/manifests/documents"
)

// ErrUnknown: no pod of that name is desired.
var ErrUnknown = errors.New("no such pod")

// WantedError is that a pod cannot be forgotten, as a manifest gives it.
type WantedError struct{ File string }

func (e *WantedError) Error() string {
	if IsURL(e.File) {
		return fmt.Sprintf("%s gives it: remove it there", e.File)
	}
	return fmt.Sprintf("its manifest is %s: remove that file", e.File)
}

// forgetting is a call of Forget on its way to the goroutine in Run.
type forgetting struct {
	ctx    context.Context // the caller's; nothing is done after its end
	key    Key
	answer chan error // has room for the one answer
}

// Forget accepts by hand that a pod is gone whose last good version runs on
// without a manifest that gives it. It returns when this is saved: the pod is
// in no later snapshot until a manifest gives it again. Errors are ErrUnknown,
// a *WantedError, and those of Save and of ctx.
func (s *Source) Forget(ctx context.Context, key Key) error {
	f := forgetting{ctx, key, make(chan error, 1)}
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

// forget uses the content of the folder at this moment.
func (s *Source) forget(ctx context.Context, key Key, now time.Time) error {
	s.full = true
	s.step(now)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	pod := s.current[key]
	if pod == nil {
		return ErrUnknown
	}
	for _, path := range slices.Sorted(maps.Keys(s.files)) {
		if f := s.files[path]; f.gives(key) && !s.isOutdated(path, f) {
			return &WantedError{path}
		}
	}
	next := s.record.clone()
	next.Forgotten[key.String()] = string(pod.UID)
	if err := s.save(next); err != nil {
		return err
	}
	s.record = next
	delete(s.current, key)
	for path, f := range s.files {
		if !IsURL(path) { // which is asked whether it gives the pod still
			f.lose(key)
		}
	}
	s.step(now)
	return nil
}

// isOutdated reports whether what a file or URL said may not be what it says now.
func (s *Source) isOutdated(path string, f *fileState) bool {
	if IsURL(path) {
		return f.stale
	}
	return len(s.folder) > 0
}

// gives reports whether the pod can be made from the file.
func (f *fileState) gives(key Key) bool {
	return slices.ContainsFunc(f.Pods, func(p documents.Found) bool { return p.Key() == key })
}

// lose drops what a file of a folder that cannot be read any more said of a
// pod, until it can be read again.
func (f *fileState) lose(key Key) {
	if f.gives(key) {
		f.Pods = slices.DeleteFunc(slices.Clone(f.Pods), func(p documents.Found) bool { return p.Key() == key })
		f.alone = f.Content
		f.hash, f.sig = "", signature{}
	}
}

// recall records forgotten pods that a manifest gives again.
func (s *Source) recall(pods map[Key]*Pod) {
	if len(s.record.Forgotten) == 0 {
		return
	}
	for key := range pods {
		delete(s.record.Forgotten, key.String())
	}
}

// clone returns a record that shares nothing with r.
func (r Record) clone() Record {
	out := Record{Forgotten: map[string]string{}}
	if r.Folder != nil {
		folder := *r.Folder
		out.Folder = &folder
	}
	maps.Copy(out.Forgotten, r.Forgotten)
	return out
}

// know takes the records of previous agents: the last good versions without the
// forgotten ones. A pod that was forgotten and is gone needs no record.
func (s *Source) know(pods []*Pod, r Record) {
	s.record = r.clone()
	s.saved = r.clone()
	if s.URL == "" { // the answer that is cached may give them
		clear(s.record.Forgotten)
	}
	for _, p := range pods {
		name := p.Key().String()
		if uid := r.Forgotten[name]; uid != "" && (uid == string(p.UID) || uid == p.Annotations[documents.AnnotationHash]) { // a pod keeps its uid over changes in place
			s.record.Forgotten[name] = uid
			continue
		}
		s.current[p.Key()] = p
	}
}
