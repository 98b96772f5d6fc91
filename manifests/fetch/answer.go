package fetch

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"monopod/manifests"
	"monopod/manifests/decode"
)

// ask sends one request. after is the delay that the server asks for before the next.
func (f *Fetcher) ask(ctx context.Context) (a manifests.Answer, after time.Duration, err error) {
	f.served = false
	f.disk.within(ctx)
	if err := f.connect(); err != nil {
		return a, 0, err
	}
	req, err := f.request(ctx, f.URL)
	if err != nil {
		return a, 0, err
	}
	f.last.condition(req)
	resp, err := f.client.Do(req)
	if err != nil {
		return a, 0, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
		f.served = true
		a, err = body(resp)
		return a, 0, err
	case resp.StatusCode == http.StatusNotModified && f.last.known:
		return a, 0, nil
	}
	drain(resp)
	return a, retryAfter(resp.Header, time.Now()), refusal(resp.StatusCode)
}

// drain reads the body of a refusal, so that the connection can be reused.
func drain(resp *http.Response) { _, _ = io.CopyN(io.Discard, resp.Body, 64<<10) }

// mostValidator is the longest ETag or Last-Modified, in bytes, that is sent back.
const mostValidator = 512

// body reads a complete answer, or returns why it is not one.
func body(resp *http.Response) (a manifests.Answer, err error) {
	if code := resp.Header.Get("Content-Encoding"); code != "" && !strings.EqualFold(code, "identity") {
		return a, fmt.Errorf("answers with the Content-Encoding %q: let the server send gzip or none", decode.Clip(code))
	}
	if resp.ContentLength >= decode.MaxSize {
		return a, fmt.Errorf("answers with %d bytes: manifests have less than 10 MiB", resp.ContentLength)
	}
	data, err := manifests.ReadBounded(resp.Body)
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return a, fmt.Errorf("the answer was cut short after %d bytes", len(data))
	case err != nil:
		return a, fmt.Errorf("the answer cannot be read: %w", err)
	case len(text) == 0:
		return a, errors.New("the answer is empty, which removes nothing: " +
			"to remove all pods let it be a List without items")
	case text[0] == '<' && !bytes.HasPrefix(text, []byte("<<")):
		return a, errors.New("answers with a web page instead of manifests: " +
			"correct staticPodURL, or log in to the network if it asks for that")
	}
	a.Data = data
	a.Unproven = resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && !resp.Uncompressed
	if tag := resp.Header.Get("ETag"); len(tag) <= mostValidator {
		a.ETag = tag
	}
	if at := resp.Header.Get("Last-Modified"); len(at) <= mostValidator && !isFresh(at, sentAt(resp.Header, time.Now())) {
		a.Modified = at
	}
	return a, nil
}

// isFresh reports whether a body was so new when it was sent that the next one may have the same
// Last-Modified, which counts seconds (RFC 9110, 8.8.2.2).
func isFresh(modified string, sent time.Time) bool {
	at, err := http.ParseTime(modified)
	return err == nil && sent.Sub(at) < 2*time.Second
}

// sentAt returns the time of an answer by the server's own clock, as this machine's may be wrong; now if it
// does not say.
func sentAt(h http.Header, now time.Time) time.Time {
	theirs, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return now
	}
	return theirs
}

// refusal returns the error for an answer without manifests, with its remedy.
func refusal(code int) error {
	todo := "correct staticPodURL"
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		todo = "check staticPodURLHeader, manifestURLTokenFile and manifestURLCertFile"
	case code == http.StatusTooManyRequests, code >= 500:
		todo = "see to the server"
	case code == http.StatusProxyAuthRequired:
		todo = "check the proxy in monopod's environment"
	}
	return fmt.Errorf("answers %s: %s", status(code), todo)
}

// status returns the code of an answer with its name.
func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// retryAfter parses the header Retry-After: seconds, or a time.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), int(longestAsk/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(sentAt(h, now)), 0), longestAsk)
}

// mostWords is the longest problem, in bytes.
const mostWords = 400

// problem returns the message of an error. It holds no secrets, and nothing that differs between
// failures with the same cause.
func (f *Fetcher) problem(err error) string {
	text := words(err)
	if of := (*signatureError)(nil); errors.As(err, &of) {
		text = "its signature " + of.name + " " + words(of.err)
	}
	for _, secret := range f.secrets() {
		text = strings.ReplaceAll(text, secret, "<elided>")
	}
	if len(text) > mostWords {
		text = strings.ToValidUTF8(text[:mostWords], "") + "..."
	}
	return text
}

// remoteAlert is the operation of an error that the server sent, such as for a client certificate
// that is missing or has expired. Package crypto/tls has no type for it.
const remoteAlert = "remote error"

// words returns what is wrong and the remedy, without the local address and port.
func words(err error) string {
	var (
		lookup   *net.DNSError
		network  *net.OpError
		stranger x509.UnknownAuthorityError
		invalid  x509.CertificateInvalidError
		of       *url.Error
	)
	switch {
	case errors.As(err, &stranger):
		return "its certificate is of a CA that is not known here: give that CA with manifestURLCAFile"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet: renew it, or set the clock of this machine"
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Sprintf("there is no host %s: correct staticPodURL, or see to the name server", decode.Clip(lookup.Name))
	case errors.As(err, &lookup):
		return fmt.Sprintf("the name %s cannot be looked up: see to the network and the name server", decode.Clip(lookup.Name))
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "does not answer in time: see to the network and the server"
	case errors.As(err, &network) && network.Op == remoteAlert:
		return fmt.Sprintf("refuses the connection (%v): check manifestURLCertFile, and see to the server", network.Err)
	case errors.As(err, &network):
		return fmt.Sprintf("cannot be reached: %v: see to the network and the server", network.Err)
	case errors.As(err, &of):
		if errors.Is(of.Err, io.EOF) || errors.Is(of.Err, io.ErrUnexpectedEOF) {
			return "ends the connection without an answer: see to the server"
		}
		return of.Err.Error()
	}
	return err.Error()
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// secrets returns the strings that no message may hold.
func (f *Fetcher) secrets() []string {
	var all []string
	add := func(s string) {
		if len(s) >= 4 { // shorter ones are part of many words
			all = append(all, s)
		}
	}
	for _, values := range f.Headers {
		for _, v := range values {
			add(v)
		}
	}
	if u, err := url.Parse(f.URL); err == nil {
		add(u.RawQuery)
		if password, ok := u.User.Password(); ok {
			add(password)
		}
	}
	return all
}
