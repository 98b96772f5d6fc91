package manifests

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
)

// Answer is what came of asking the URL for manifests: a complete body, or why
// there is none, or neither when the last body is still the current one.
type Answer struct {
	Data []byte // a complete body; nil: there is none, or it is the last one again
	// Unproven is set if the body may have been cut short: what lacks in it is
	// not gone.
	Unproven bool
	ETag     string // of the body, as the server wrote it; "": none
	Modified string // its Last-Modified; "": none
	Problem  string // why nothing could be read and what to do; "": it could
}

// IsURL reports whether what gives a pod is a URL rather than the path of a file.
func IsURL(file string) bool {
	return strings.HasPrefix(file, "http://") || strings.HasPrefix(file, "https://")
}

// URLName returns what a URL is called in reports: without user, password and the
// values of its query, which may be secrets.
func URLName(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the manifest URL"
	}
	name := url.URL{Scheme: strings.ToLower(u.Scheme), Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	text := name.String()
	if u.RawQuery != "" {
		text += "?..."
	}
	return text
}

// CheckURL returns why a URL cannot be asked for manifests. The error quotes
// nothing of it.
func CheckURL(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || !IsURL(strings.ToLower(raw)) {
		return errors.New("not of the form http://HOST/PATH or https://HOST/PATH")
	}
	return nil
}

// knowURL gives the Source the URL as one more file, with what it said last.
func (s *Source) knowURL() {
	if s.URL != "" {
		s.urlName = URLName(s.URL)
		f := &fileState{pending: true, stale: true}
		s.files[s.urlName] = f
		s.recallUnclear(s.urlName, f)
		if s.Cached != nil {
			s.decodeAnswer(f, *s.Cached, time.Time{})
			s.recallUnclear(s.urlName, f) // the URL may have said that later, and is to say it again
		}
	}
	for key, p := range s.current {
		switch {
		case !IsURL(p.File):
		case s.URL != "": // another one before: this one's answer decides
			s.current[key] = p.In(s.urlName)
		default:
			s.files[p.File] = &fileState{stale: true, trouble: "is not asked any more, as no manifest URL is given: " +
				"its pods keep running; give it again with --manifest-url" + orAcceptByHand}
		}
	}
}

// dropURLs forgets the URLs of former agents whose pods are gone.
func (s *Source) dropURLs() {
	for path := range s.files {
		if IsURL(path) && path != s.urlName && !s.gave(path) {
			delete(s.files, path)
		}
	}
}

// dropFiles forgets the files of the folder that keep does not name.
func (s *Source) dropFiles(keep []string) {
	for path := range s.files {
		_, stays := slices.BinarySearch(keep, path)
		if !stays && !IsURL(path) {
			delete(s.files, path)
		}
	}
}

// answered takes what came of asking the URL.
func (s *Source) answered(a Answer) {
	f := s.files[s.urlName]
	switch {
	case f == nil:
	case a.Problem != "":
		f.stale, f.trouble = true, a.Problem
	case a.Data == nil:
		f.stale, f.trouble = f.pending, ""
	default:
		changed := s.decodeAnswer(f, a, time.Now())
		f.stale, f.trouble = false, ""
		if changed && s.SaveAnswer != nil && (len(f.Pods)+len(f.Objects) > 0 || !f.mayGive()) {
			s.keepAnswer(a)
		}
	}
}

// decodeAnswer makes a body the content of the URL's state, and reports whether it
// was another one. now is zero for one that came who knows when.
func (s *Source) decodeAnswer(f *fileState, a Answer, now time.Time) bool {
	f.unproven = a.Unproven
	hash := hashOf(a.Data)
	if f.hash == hash {
		return false
	}
	o := s.options()
	o.URL = s.URL
	f.hold(documents.Read(s.urlName, a.Data, o))
	f.hash, f.pending = hash, false
	f.came(hash, now)
	s.tellFaults(s.urlName, f.Faults)
	return true
}

// keepAnswer saves an answer for the next agent. One that cannot be saved only lacks
// if that agent has no network.
func (s *Source) keepAnswer(a Answer) {
	err := s.SaveAnswer(a)
	if err != nil && !s.unsaved {
		s.Log.Error("the answer of the manifest URL cannot be saved; "+
			"after a restart without network only the pods that run are known", "err", err)
	}
	s.unsaved = err != nil
}

// keepOfURL decides on a current pod that the URL gave. Files win over the URL, and
// only a complete answer without error removes the pod.
func (r *resolution) keepOfURL(key Key, pod *Pod) {
	list, f := r.claims[key], r.source.files[pod.File]
	switch {
	case len(list) > 0: // those of files come first
		r.take(key, list[0])
	case r.refused[key] != "":
		r.pods[key], r.held[key] = pod.In(r.refused[key]), true
	case f.doubtful():
		r.pods[key], r.held[key] = pod, f.wrong() || f.trouble != ""
	default:
		r.keepHidden(key, pod, f.lacks())
	}
}

// lacks is the absence of what the URL's content does not give any more; nil: it is not known
// since when.
func (f *fileState) lacks() *absence {
	if f.since.IsZero() {
		return nil
	}
	return &absence{went: f.since, since: f.since}
}

// isRecalled reports whether what is known of the URL's content is of one that a former Source had
// of it, and that was not said again yet.
func (f *fileState) isRecalled() bool { return f.stale && f.version != "" && f.version != f.hash }

// doubtful reports whether what lacks in the content of a URL may be there still.
func (f *fileState) doubtful() bool { return f.stale || f.unproven || f.mayGive() }

// isForgotten reports whether a pod or an object of a stale content was forgotten, which is the
// URL's, and so no answer has given it since.
func (s *Source) isForgotten(path, name string) bool {
	_, forgotten := s.record.Forgotten[name]
	return forgotten && IsURL(path)
}

// leave records that what a file says of a name counts for nothing, as it is forgotten.
func (r *resolution) leave(path, name string) { r.left[path] = append(r.left[path], name) }

// rejectURL reports that what file gives is not taken from the URL, too.
func (r *resolution) rejectURL(key Key, file string) {
	if list := r.claims[key]; len(list) > 0 && IsURL(list[0].path) {
		r.rejectOthers(key, file)
	}
}

// asked returns the problems of asking the URL.
func (f *fileState) asked(path string) []decode.Problem {
	var all []decode.Problem
	if f.trouble != "" {
		all = append(all, decode.Problem{File: path, Message: f.trouble})
	}
	if f.unproven && !f.stale {
		all = append(all, decode.Problem{File: path, Warning: true, Message: "the answer has no " +
			"Content-Length and may have been cut short: pods that lack in it keep running; let the server send a length, or gzip"})
	}
	return all
}
