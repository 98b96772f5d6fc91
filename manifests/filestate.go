package manifests

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
)

const (
	// retryBusy is the first delay before a file that is being written is read again; the delay
	// grows.
	retryBusy = 10 * time.Millisecond
	// noWriter is how long a file must stay unchanged to count as complete although the kernel says
	// that it may have a writer: NFSv4 and CIFS say so of every file. A longer wait for a writer is
	// reported.
	noWriter = 3 * time.Second
)

// fileState is what the Source knows of one existing file.
type fileState struct {
	documents.Content
	alone   documents.Content // the same, without what other files give
	sig     signature         // of the version that was read; zero: read again
	hash    string            // SHA-256 in hex of the bytes that gave the content; "": none did
	link    bool              // the path is a symlink
	isNull  bool              // it leads to /dev/null
	isMask  bool              // it is empty, and so masks the files of its name in other folders
	mode    fs.FileMode       // its permissions
	pending bool              // never read to the end yet
	open    bool              // was read while a writer had it open: more may follow

	failed  bool            // it cannot be read at all
	since   time.Time       // when the content was first seen
	version string          // identifies the content; "": none known yet
	seen    int             // the turn in which the content was first seen
	later   map[string]bool // of a content of which an older monopod recorded that: what was first given after it was seen
	text    string          // the bytes of a content that cannot be read completely
	before  map[string]bool // the pods and objects that earlier contents gave, since the last one without an error

	plain *plainReport // of the content; nil: not made yet

	writable []decode.Problem // write access of other users to it and to the folders above it

	stale    bool   // of a URL: not confirmed by its last answer
	unproven bool   // of a URL: its answer may have been cut short
	trouble  string // of a URL: why it has no answer; "": it has one

	busy      signature // the version that is being written
	busySince time.Time
	waited    time.Time // since when a writer is waited for; zero: none is
	waitsLong bool      // long enough to be reported
	retry     time.Time // when to read again; zero: with the folder
}

// uncertain reports whether a file may give more pods than were read from it.
func (f *fileState) uncertain() bool { return f.Unclear || f.pending || f.open }

// wrong reports whether a file has an error.
func (f *fileState) wrong() bool {
	return slices.ContainsFunc(f.Problems, func(p decode.Problem) bool { return !p.Warning })
}

// mayGive reports whether a file may give a pod that was not read from it: an error may hide the
// pod.
func (f *fileState) mayGive() bool { return f.uncertain() || f.wrong() }

// insists reports whether a file is read although it is open for writing.
func (f *fileState) insists(now time.Time, settle time.Duration) bool {
	return f.busy != signature{} && now.Sub(f.busySince) >= settle
}

// takeReading stores the content of a file, unless the file is being written. insist is the value
// that was passed to readManifest.
func (s *Source) takeReading(path string, f *fileState, r reading, insist bool, now time.Time) {
	if r.busy && (!insist || r.sig != f.busy) {
		if r.sig != f.busy {
			f.busy, f.busySince = r.sig, now
		}
		f.await(now)
		return
	}
	if f.open = r.busy && now.Sub(f.busySince) < noWriter; f.open {
		f.await(now)
	} else {
		f.rest()
	}
	if !r.busy {
		f.busy = signature{}
	}
	f.sig = r.sig
	if !r.sig.stable(now) {
		f.sig = signature{}
	}
	hash := hashOf(r.data)
	if f.hash != hash || f.isNull != r.isNull {
		s.hold(f, s.contentOf(path, f, r))
		f.hash, f.text, f.isNull = hash, "", r.isNull
		if f.Unclear {
			f.text = string(r.data)
		}
		s.tellFaults(path, f.Faults)
	}
	f.failed, f.pending, f.isMask = false, false, s.Layer.mayMask() && len(r.data) == 0
	s.cameWith(f, hash, now)
}

// contentOf returns the content of a file of which r was read. An empty one that masks others gives
// nothing, unless it gave something before: that it was emptied may be an accident, a link to
// /dev/null is none.
func (s *Source) contentOf(path string, f *fileState, r reading) documents.Content {
	isEmptied := len(f.before) > 0 || s.gave(path)
	if r.isNull || s.Layer.mayMask() && len(r.data) == 0 && !isEmptied {
		return documents.Content{}
	}
	return documents.Read(path, r.data, s.options())
}

// options returns the decode options, with the Source's desired pods as the accepted versions.
func (s *Source) options() Options {
	o := s.Options
	o.IsAccepted = func(p *Pod) bool {
		was := s.current[p.Key()]
		return was != nil && was.Digest == p.Digest
	}
	return o
}

// hold replaces the content of a file. What earlier contents gave is kept in before as long as the
// file may give more than was read from it.
func (s *Source) hold(f *fileState, c documents.Content) {
	before := map[string]bool{}
	if f.pending || f.Unclear || f.wrong() {
		maps.Copy(before, f.before)
		maps.DeleteFunc(before, func(name string, _ bool) bool { return s.isLater(f, name) })
	}
	for _, p := range f.Pods {
		before[p.Key().String()] = true
	}
	for _, o := range f.Objects {
		before[o.String()] = true
	}
	f.Content, f.alone, f.before, f.plain = c, c, before, nil
}

// joinClaims lets pods use the PersistentVolumeClaims of other files, and removes the notes about
// those claims.
func (s *Source) joinClaims() {
	all := map[Key]bool{}
	for _, f := range s.files {
		for _, c := range f.alone.Claims {
			all[c] = true
		}
	}
	maps.Copy(all, s.around.Claims)
	for _, f := range s.files {
		if len(f.alone.Lacking)+len(f.alone.Unnamed) > 0 {
			f.Content = f.alone.Given(all)
		}
	}
}

// await sets when a file that may have a writer is read again.
func (f *fileState) await(now time.Time) {
	if f.waited.IsZero() {
		f.waited = now
	}
	wait := now.Sub(f.waited)
	f.retry, f.waitsLong = now.Add(min(max(retryBusy, wait/10), retryFolder)), wait > noWriter
}

// rest ends the wait for a writer.
func (f *fileState) rest() { f.waited, f.waitsLong, f.retry = time.Time{}, false, time.Time{} }

// changing returns the problem of a file that has had a writer for long.
func changing(path string) decode.Problem {
	return decode.Problem{File: path, Warning: true, Message: fmt.Sprintf(
		"a program has it open for writing and changes it again and again: what is missing in it "+
			"counts as missing once it has not changed for %s; replace it by rename instead", noWriter)}
}

// tellFaults logs and counts the panics while decoding a file. It is called once for each version
// of the file.
func (s *Source) tellFaults(path string, faults []string) {
	for _, stack := range faults {
		s.Log.Error("cannot read a document", "file", path, "stack", stack)
		if s.Fault != nil {
			s.Fault()
		}
	}
}

// fail records that an existing file cannot be read. is distinguishes such a version from the next
// as far as that is possible. The file is tried again with the folder.
func (s *Source) fail(path string, f *fileState, err error, is signature, now time.Time) {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	message, isKernels := fmt.Sprintf("cannot be read: %v", err), errors.Is(err, errKernelFile)
	if isKernels {
		message += ": remove it from the folder"
	}
	s.hold(f, documents.Content{Unclear: !isKernels, Problems: []decode.Problem{{File: path, Message: message}}})
	f.sig, f.hash, f.pending = signature{}, "", false
	f.rest()
	f.failed = !isKernels
	s.cameWith(f, unreadable(message, is), now)
}

// hashOf returns the hex SHA-256 of a file's bytes.
func hashOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
