// Package fetch asks a URL for manifests, again and again.
package fetch

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"monopod/manifests"
)

const (
	// deadline bounds a request as a whole; the server may take firstByte of it to begin its
	// answer. A kubelet allows 10 s for all.
	deadline  = time.Minute
	firstByte = 10 * time.Second

	firstRetry = time.Second     // after the first failure, while nothing is known; the wait doubles with each
	lastRetry  = 2 * time.Minute // up to this, or to Every if that is more
	knownRetry = time.Minute     // after the first failure, or Every if that is less, once an answer is known
	longestAsk = time.Hour       // the longest Retry-After that is honoured
)

// Settings are the URL and how to request it.
type Settings struct {
	URL     string
	Headers map[string][]string // of each request to the URL's own host
	// CAFile has the CAs that replace the machine's to verify the server; CertFile and KeyFile are
	// the client certificate; TokenFile has a bearer token. All but TokenFile are PEM; "": none.
	// They are read again when they change.
	CAFile, CertFile, KeyFile, TokenFile string
	Every                                time.Duration     // between two requests; 0: 20 s
	Known                                *manifests.Answer // the last complete one; nil: none. New drops one for another node
	// PublicKey is whose signature answers must have; nil: none. Node is the name of this node.
	PublicKey ed25519.PublicKey
	Node      string
	Serial    *manifests.Serial // as it was saved last; nil: none
	// SaveSerial saves one durably, before the content counts, or else as soon as the disk takes it;
	// may be nil.
	SaveSerial func(manifests.Serial) error

	Dial func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network
}

// Fetcher requests manifests from a URL. All fields but the channel belong to the goroutine in Run.
type Fetcher struct {
	Settings
	name    string // of the URL
	answers chan manifests.Answer
	client  *http.Client
	files   tlsFiles
	disk    files
	last    last
	trust   trust
	failed  int    // requests in a row
	served  bool   // the server gave what was asked for, whatever is in it, or has no signature of it
	sent    bool   // an answer, since the start
	told    string // the problem that was sent last
}

// last is the last complete body.
type last struct {
	etag, modified string
	sum            [sha256.Size]byte
	known          bool
	unproven       bool // it may have been cut short
}

// New returns a Fetcher that does nothing before Run.
func New(s Settings) *Fetcher {
	s.Every = cmp.Or(s.Every, 20*time.Second)
	if s.isForeign(s.Known) {
		s.Known = nil
	}
	f := &Fetcher{Settings: s, name: manifests.URLName(s.URL), answers: make(chan manifests.Answer), disk: newFiles()}
	f.client = &http.Client{CheckRedirect: f.checkRedirect}
	f.trust = newTrust(s)
	if f.trust.isLast(s.Known) {
		f.remember(*s.Known)
	}
	return f
}

// Answers delivers every change: another body, another problem, the end of a problem; and the first
// answer.
func (f *Fetcher) Answers() <-chan manifests.Answer { return f.answers }

// Run sends requests until ctx ends. It may be called once.
func (f *Fetcher) Run(ctx context.Context) {
	defer f.client.CloseIdleConnections()
	if f.Known != nil && !sleep(ctx, f.turn()) {
		return
	}
	for {
		a, after := f.poll(ctx)
		if ctx.Err() != nil {
			return
		}
		if f.isNews(a) {
			select {
			case f.answers <- a:
			case <-ctx.Done():
				return
			}
		}
		if !sleep(ctx, f.pause(a, after)) {
			return
		}
	}
}

// sleep waits, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// turn returns when after the start the first request of this node is due, if it has a saved answer
// to run meanwhile: nodes to which power comes back together do not send their requests together.
func (f *Fetcher) turn() time.Duration {
	sum := sha256.Sum256([]byte(f.Node))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(f.Every))
}

// isNews reports whether the receiver does not have the answer yet, and records it as sent.
func (f *Fetcher) isNews(a manifests.Answer) bool {
	if f.trust.mayAgree(time.Now()) {
		return false
	}
	news := a.Data != nil || a.Problem != f.told || !f.sent
	f.told, f.sent = a.Problem, true
	return news
}

// pause returns how long to wait after an answer. asked is the longer delay that the server may ask
// for. A server that gives what cannot be used, as after a bad upload, is asked as often as usual.
func (f *Fetcher) pause(a manifests.Answer, asked time.Duration) time.Duration {
	if a.Problem == "" || f.served && f.last.known {
		f.failed = 0
		return jitter(f.Every)
	}
	wait := min(f.firstWait()<<min(f.failed, 20), max(lastRetry, f.Every))
	f.failed++
	if asked > 0 { // it may be the same time for all nodes
		asked = min(asked, longestAsk) + rand.N(f.Every)
	}
	return max(jitter(wait), asked)
}

// firstWait returns how long to wait after the first failure. A node that has something to run does not
// ask more often than usual: after a bad upload all nodes would.
func (f *Fetcher) firstWait() time.Duration {
	if f.last.known {
		return min(f.Every, knownRetry)
	}
	return firstRetry
}

// jitter varies a delay by up to a tenth, so that machines that started together do not send their
// requests together.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// poll asks once. It returns the delay that the server asks for. A body with the same content as the
// last is not returned again.
func (f *Fetcher) poll(ctx context.Context) (manifests.Answer, time.Duration) {
	a, after, err := f.get(ctx)
	f.saveSerial()
	f.trust.watch(err, time.Now())
	if err != nil {
		return manifests.Answer{Problem: f.problem(err) + "; what it gave last counts until then"}, after
	}
	if a.Data == nil {
		return a, 0
	}
	before := f.last
	f.remember(a)
	if before.known && before.sum == f.last.sum && (a.Unproven || !before.unproven) {
		f.last.unproven = before.unproven
		return manifests.Answer{}, 0
	}
	return a, 0
}

// get sends one request, and another for the signature of a new body.
func (f *Fetcher) get(ctx context.Context) (a manifests.Answer, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	a, after, err = f.ask(ctx)
	if err == nil && a.Data != nil && !f.isLast(a) {
		after, err = f.verify(ctx, &a)
	}
	return a, after, err
}

// Ask requests the manifests once, for a command that has nothing without them. It may be called once,
// instead of Run, on a Fetcher without a Known answer.
func (f *Fetcher) Ask(ctx context.Context) (manifests.Answer, error) {
	defer f.client.CloseIdleConnections()
	a, _, err := f.get(ctx)
	if err != nil {
		return a, fmt.Errorf("%s: %s", f.name, f.problem(err))
	}
	return a, nil
}

// isLast reports whether an answer has the body that came last.
func (f *Fetcher) isLast(a manifests.Answer) bool {
	return f.last.known && f.last.sum == sha256.Sum256(a.Data)
}

// remember makes the next requests conditional on this body. One that may have been cut short is
// requested again in full.
func (f *Fetcher) remember(a manifests.Answer) {
	f.last = last{sum: sha256.Sum256(a.Data), known: true, unproven: a.Unproven}
	if !a.Unproven {
		f.last.etag, f.last.modified = a.ETag, a.Modified
	}
}
