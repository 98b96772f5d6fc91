package fetch

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"time"

	"monopod/manifests"
	"monopod/manifests/annotations"
	"monopod/manifests/decode"
	"monopod/manifests/signature"
)

// uploadTime is how long content and signature may be of two versions without a problem: they are
// two requests, between which somebody may upload both.
const uploadTime = time.Minute

// trust decides which content counts: it is signed, later than what counted before, and for this
// node. The zero value trusts all.
type trust struct {
	key    ed25519.PublicKey // nil: none is asked for
	signer string            // the key as a text
	node   string
	last   manifests.Serial // of the content that counted last; zero: none did
	saved  manifests.Serial // as it was saved last
	since  time.Time        // when content and signature, or their version, first disagreed; zero: they agree
}

// newTrust returns the trust after the answer that is known.
func newTrust(s Settings) trust {
	if s.PublicKey == nil {
		return trust{}
	}
	t := trust{key: s.PublicKey, signer: signature.Text(s.PublicKey), node: s.Node}
	if s.Serial != nil && s.Serial.Signer == t.signer && !(signature.Stamp{Node: s.Serial.Node}).IsForOther(s.Node) {
		t.last, t.saved = *s.Serial, *s.Serial
	}
	if t.knows(s.Known) && s.Known.Serial > t.last.Number { // an older agent saved no number apart from its content
		stamp, _ := signature.ReadStamp(s.Known.Data)
		t.last = t.serialOf(s.Known.Data, signature.Stamp{Serial: s.Known.Serial, Node: stamp.Node})
	}
	return t
}

// serialOf returns the serial of content that has this stamp.
func (t *trust) serialOf(content []byte, s signature.Stamp) manifests.Serial {
	sum := sha256.Sum256(content)
	return manifests.Serial{Signer: t.signer, Number: s.Serial, Node: s.Node, Sum: hex.EncodeToString(sum[:])}
}

// isLast reports whether an answer that is known is the content that counted last. If not, as it
// could not be saved, the server must not confirm it.
func (t *trust) isLast(a *manifests.Answer) bool {
	return t.knows(a) && (t.key == nil || a.Serial == t.last.Number)
}

// knows reports whether an answer needs no other signature. One that was saved before the key was
// set, or with another key, is requested and verified again.
func (t *trust) knows(a *manifests.Answer) bool {
	return a != nil && (t.key == nil || a.Signer == t.signer)
}

// isForeign reports whether an answer is a signed list for another node: it was saved under a former
// name of this one, or on the machine of which this one is a copy.
func (s *Settings) isForeign(a *manifests.Answer) bool {
	if s.PublicKey == nil || a == nil || a.Signer == "" {
		return false
	}
	stamp, err := signature.ReadStamp(a.Data)
	return err == nil && stamp.IsForOther(s.Node)
}

// errOlder is returned for content that was signed before what counted last.
type errOlder struct{ serial, last int64 }

func (e errOlder) Error() string {
	return fmt.Sprintf("is older than what came before: its %s is %d, after %d: sign what is to count with a higher one",
		annotations.Serial, e.serial, e.last)
}

// accept makes content count that has a valid signature, or returns why it does not.
func (t *trust) accept(a *manifests.Answer) error {
	s, err := signature.ReadStamp(a.Data)
	switch {
	case err != nil:
		return err
	case s.IsForOther(t.node):
		return fmt.Errorf("is for another node than %s, by %s of its List: correct staticPodURL, or what the server has there",
			t.node, annotations.Node)
	case s.Serial < t.last.Number:
		return errOlder{s.Serial, t.last.Number}
	case s.Serial == t.last.Number && t.serialOf(a.Data, s) != t.last:
		return fmt.Errorf("has changed, but not its %s, %d: sign it with a higher one", annotations.Serial, s.Serial)
	}
	t.last = t.serialOf(a.Data, s)
	a.Signer, a.Serial = t.signer, s.Serial
	a.Unproven = false // the signature is one of the whole content
	return nil
}

// saveSerial saves the serial of the content that counted last, if it is not saved. An answer does not
// wait for a disk that does not take it: the next request tries again.
func (f *Fetcher) saveSerial() {
	t := &f.trust
	if f.SaveSerial == nil || t.last == t.saved {
		return
	}
	err := f.SaveSerial(t.last)
	if err == nil {
		t.saved = t.last
	}
}

// watch notes since when an error is one that passes when an upload is complete.
func (t *trust) watch(err error, now time.Time) {
	older := errOlder{}
	switch {
	case !errors.Is(err, signature.ErrOther) && !errors.As(err, &older):
		t.since = time.Time{}
	case t.since.IsZero():
		t.since = now
	}
}

// mayAgree reports whether the problem of the last answer may be one of an upload.
func (t *trust) mayAgree(now time.Time) bool {
	return !t.since.IsZero() && now.Sub(t.since) < uploadTime
}

// signatureError is an error about the signature, not the content.
type signatureError struct {
	name string // of the signature
	err  error
}

func (e *signatureError) Error() string { return e.err.Error() }
func (e *signatureError) Unwrap() error { return e.err }

// verify requests the signature of a new body, and returns why the body does not count. after is
// the delay that the server asks for.
func (f *Fetcher) verify(ctx context.Context, a *manifests.Answer) (after time.Duration, err error) {
	if f.trust.key == nil {
		return 0, nil
	}
	where, name := signatureURL(f.URL)
	file, after, err := f.signature(ctx, where)
	if err == nil {
		err = signature.Verify(f.trust.key, a.Data, file)
	}
	if err != nil {
		return after, &signatureError{name, err}
	}
	return 0, f.trust.accept(a)
}

// signatureURL returns where the signature of a URL's content is, and its file's name.
func signatureURL(raw string) (where, name string) {
	u, err := url.Parse(raw)
	if err != nil {
		return raw, signature.Suffix
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.Path += signature.Suffix
	if u.RawPath != "" {
		u.RawPath += signature.Suffix
	}
	return u.String(), decode.Clip(path.Base(u.Path))
}

// signature requests the file of a signature. A server that refuses it, or does not answer, is one that
// refuses the content.
func (f *Fetcher) signature(ctx context.Context, where string) (file []byte, after time.Duration, err error) {
	f.served = false
	req, err := f.request(ctx, where)
	if err != nil {
		return nil, 0, err
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		f.served = true
	case http.StatusNotFound, http.StatusForbidden, http.StatusGone:
		f.served = true
		drain(resp)
		return nil, 0, fmt.Errorf("is missing (%s): sign the content with `monopod sign`, and upload the signature beside it", status(resp.StatusCode))
	default:
		drain(resp)
		return nil, retryAfter(resp.Header, time.Now()), refusal(resp.StatusCode)
	}
	file, err = io.ReadAll(io.LimitReader(resp.Body, signature.MaxSize))
	if err == nil && len(file) == signature.MaxSize {
		err = fmt.Errorf("has %d bytes or more, where a signature has 89: sign the content with `monopod sign`", signature.MaxSize)
	}
	return file, 0, err
}
