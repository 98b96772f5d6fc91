package manifests

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
)

// Answer is the result of requesting manifests from the URL: a complete body, or the problem, or
// neither if the last body is still current.
type Answer struct {
	Data []byte // a complete body; nil: there is none, or the last one is current
	// Unproven is set if the body may have been cut short: what is missing in it is not gone.
	Unproven bool
	ETag     string // of the body, as the server sent it; "": none
	Modified string // its Last-Modified; "": none
	// Signer is the public key of which the body has a valid signature, as signature.Text writes it,
	// and Serial the body's serial number; "" and 0: no signature was asked for.
	Signer  string
	Serial  int64
	Problem string // why nothing could be read and the remedy; "": none
}

// Serial is which signed content of the URL counted last. It is known apart from the content, which is
// saved only if it gives something.
type Serial struct {
	Signer string `json:"signer"`         // as in Answer
	Number int64  `json:"serial"`         // of the content
	Node   string `json:"node,omitempty"` // the only node that the content is for; "": any
	Sum    string `json:"content"`        // hex SHA-256 of the content
}

// IsURL reports whether a pod's source is a URL rather than the path of a file.
func IsURL(file string) bool {
	return strings.HasPrefix(file, "http://") || strings.HasPrefix(file, "https://")
}

// URLName returns the name of a URL in reports: without user, password and the values of its query,
// which may be secrets.
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

// nodeInURL stands for the name of the node in the path and the query of a manifest URL.
const nodeInURL = "{node}"

// NodeURL returns a manifest URL with the name of the node in it, as it is requested.
func NodeURL(raw, node string) string {
	return strings.ReplaceAll(raw, nodeInURL, url.PathEscape(node))
}

// CheckURL returns why manifests cannot be requested from a URL. The error quotes nothing of it.
func CheckURL(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(NodeURL(raw, "node"))
	switch {
	case err != nil || u.Host == "" || !IsURL(strings.ToLower(raw)):
		return errors.New("not of the form http://HOST/PATH or https://HOST/PATH")
	case strings.Contains(hostOf(raw), nodeInURL):
		return errors.New("has {node} in its host: it stands for the node's name in the path and the query alone")
	case strings.ContainsAny(NodeURL(raw, ""), "{}"):
		return errors.New("has braces: {node} alone stands for something; write others as %7B and %7D")
	}
	return nil
}

// hostOf returns what stands before the path of a URL, user and password included.
func hostOf(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		return rest
	}
	return rest[:end]
}

// knowURL adds the URL as one more file, with its last answer.
func (s *Source) knowURL() {
	if s.URL != "" {
		s.urlName = URLName(s.URL)
		f := &fileState{pending: true, stale: true, seen: s.turn}
		s.files[s.urlName] = f
		s.recallUnclear(s.urlName, f)
		if s.Cached != nil {
			s.signer = s.Cached.Signer
			s.decodeAnswer(f, *s.Cached, time.Time{})
			s.recallUnclear(s.urlName, f) // the record may be of a later answer than the cached one
		}
	}
	for key, p := range s.current {
		switch {
		case !IsURL(p.File):
		case s.URL != "": // another one before: this one's answer decides
			s.current[key] = p.In(s.urlName)
		default:
			s.knowFormerURL(p.File)
		}
	}
}

// knowFormerURL adds a URL that is not requested any more, with the reason why what it gave stays.
func (s *Source) knowFormerURL(name string) {
	s.files[name] = &fileState{stale: true, trouble: "is not asked any more, as no manifest URL is given: " +
		"its pods and objects stay; give it again with --manifest-url" + orAcceptByHand}
}

// dropURLs drops the URLs of former agents whose pods are gone.
func (s *Source) dropURLs() {
	for path := range s.files {
		if IsURL(path) && path != s.urlName && !s.gave(path) {
			delete(s.files, path)
		}
	}
}

// dropFiles drops the states of files that are not in keep, which is sorted.
func (s *Source) dropFiles(keep []string) {
	for path := range s.files {
		_, stays := slices.BinarySearch(keep, path)
		if !stays && !IsURL(path) {
			delete(s.files, path)
		}
	}
	maps.DeleteFunc(s.odd, func(path string, _ bool) bool {
		_, stays := slices.BinarySearch(keep, path)
		return !stays
	})
}

// answered handles an answer of the URL.
func (s *Source) answered(a Answer) {
	f := s.files[s.urlName]
	switch {
	case f == nil:
	case a.Problem != "":
		f.stale, f.trouble = true, a.Problem
	case a.Data == nil:
		f.stale, f.trouble = f.pending, ""
	default:
		changed := s.decodeAnswer(f, a, time.Now()) || a.Signer != s.signer
		s.signer = a.Signer
		f.stale, f.trouble = false, ""
		if changed && s.SaveAnswer != nil && (len(f.Pods)+len(f.Objects) > 0 || !f.mayGive()) {
			s.keepAnswer(a)
		}
	}
}

// decodeAnswer stores a body as the content of the URL's state, and reports whether it differs from
// the last. now is zero for a cached one, whose time is unknown.
func (s *Source) decodeAnswer(f *fileState, a Answer, now time.Time) bool {
	f.unproven = a.Unproven
	hash := hashOf(a.Data)
	if f.hash == hash {
		return false
	}
	o := s.options()
	o.URL = s.URL
	s.hold(f, documents.Read(s.urlName, a.Data, o))
	f.hash, f.pending = hash, false
	s.cameWith(f, hash, now)
	s.tellFaults(s.urlName, f.Faults)
	return true
}

// keepAnswer saves an answer for the next agent.
func (s *Source) keepAnswer(a Answer) {
	s.unsaved, s.keepAt = &a, time.Time{}
	s.rememberAnswer(time.Now())
}

// rememberAnswer saves the answer that is not saved. A failed save is tried again, and matters only if
// an agent without a network is the next.
func (s *Source) rememberAnswer(now time.Time) {
	if s.unsaved == nil || now.Before(s.keepAt) {
		return
	}
	err := s.SaveAnswer(*s.unsaved)
	if err == nil {
		s.unsaved = nil
		return
	}
	if s.keepAt.IsZero() {
		s.Log.Error("the answer of the manifest URL cannot be saved; "+
			"after a restart without network only the pods that run are known", "err", err)
	}
	s.keepAt = now.Add(retryFolder)
}

// keepOfURL decides on a current pod that the URL gave. Files take precedence over the URL, and
// only a complete answer without error removes the pod.
func (r *resolution) keepOfURL(key Key, pod *Pod) {
	list, f := r.claims[key], r.source.files[pod.File]
	switch {
	case len(list) > 0: // claims of files come first
		r.take(key, list[0])
	case r.refused[key] != "":
		r.pods[key], r.held[key] = pod.In(r.refused[key]), true
	case f.doubtful():
		r.pods[key], r.held[key] = pod, f.wrong() || f.trouble != ""
	default:
		r.keepHidden(key, pod, f.lacks())
	}
}

// lacks returns the absence of what the URL's content no longer gives; nil: it is not known since
// when.
func (f *fileState) lacks() *absence {
	if f.since.IsZero() {
		return nil
	}
	return &absence{went: f.since, since: f.since}
}

// isRecalled reports whether version, seen and before are those of a content that a former Source
// got from the URL, and that no answer has confirmed yet.
func (f *fileState) isRecalled() bool { return f.stale && f.version != "" && f.version != f.hash }

// doubtful reports whether what is missing in the content of a URL may still exist.
func (f *fileState) doubtful() bool { return f.stale || f.unproven || f.mayGive() }

// isForgotten reports whether a pod or an object of stale content was forgotten: then the content
// is the URL's, and no answer has given the pod or object since.
func (s *Source) isForgotten(path, name string) bool {
	_, forgotten := s.record.Forgotten[name]
	return forgotten && IsURL(path)
}

// leave records that a file's content for a name has no effect because the name is forgotten.
func (r *resolution) leave(path, name string) { r.left[path] = append(r.left[path], name) }

// rejectURL reports in the URL's problems that its pod is not used, as file gives the pod.
func (r *resolution) rejectURL(key Key, file string) {
	if list := r.claims[key]; len(list) > 0 && IsURL(list[0].path) {
		r.rejectOthers(key, file)
	}
}

// asked returns the problems of requesting the URL.
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
