// Package image pulls images and removes unused ones: the Puller pulls, with credentials from the
// Keyring; the Collector keeps the disk from filling up with images. Of pods it knows only the uid
// and the names of the images that they need.
package image

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	grpcstatus "google.golang.org/grpc/status"

	"monopod/manifests/imagename"
)

// Reasons why a container waits for its image, in the kubelet's words.
const (
	ErrImagePull      = "ErrImagePull"
	ImagePullBackOff  = "ImagePullBackOff"
	ErrNeverPull      = "ErrImageNeverPull"
	InvalidName       = "InvalidImageName"
	ErrInspect        = "ImageInspectError"
	ErrNoRegistry     = "RegistryUnavailable"       // only from runtimes that return it
	ErrSignature      = "SignatureValidationFailed" // likewise
	lookAgain         = 10 * time.Second            // when an image is missing that others must provide
	lookAgainForNames = 5 * time.Minute             // when only another manifest helps
)

// Error is why an image cannot be had.
type Error struct {
	Reason string // one of the reasons above
	Image  string // as it was requested
	Err    error
	Retry  time.Time // when a new request makes sense
	Count  int       // pulls that failed in a row
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// IsPull reports whether the image could not be pulled, and will be pulled again.
func (e *Error) IsPull() bool {
	return e.Reason == ErrImagePull || e.Reason == ImagePullBackOff || e.Reason == ErrNoRegistry
}

// Words returns which image cannot be had, and why, whether it is tried just now or waited for.
func (e *Error) Words() string {
	switch e.Reason {
	case ErrImagePull, ErrNoRegistry, ErrSignature:
		return fmt.Sprintf("image %s cannot be pulled: %s", e.Image, cause(e.Err))
	case ImagePullBackOff:
		return fmt.Sprintf("image %s cannot be pulled: %s", e.Image, cause(cmp.Or(errors.Unwrap(e.Err), e.Err)))
	}
	return fmt.Sprintf("image %s: %s: %s", e.Image, e.Reason, e.Err)
}

// secrets are the name and the password in a URL.
var secrets = regexp.MustCompile(`://[^/\s"]*@`)

// denied is containerd's message that an image does not exist or needs credentials. What follows
// it adds nothing.
var denied = regexp.MustCompile(`pull access denied, [^:]*`)

// cause is the last part of an error of the runtime: before it stand the calls that led there,
// each with the image's name. With several credentials it is the error of the last one. Names and
// passwords of URLs are left out.
func cause(err error) string {
	text := secrets.ReplaceAllString(lastOf(err).Error(), "://")
	if _, isCall := grpcstatus.FromError(err); !isCall {
		return text
	}
	if words := denied.FindString(text); words != "" {
		return words
	}
	at := strings.LastIndex(text, ": ")
	for at > 0 && strings.HasPrefix(text[at+len(": "):], "http") { // a page that explains what stands before it
		at = strings.LastIndex(text[:at], ": ")
	}
	return strings.TrimPrefix(text[max(0, at):], ": ")
}

// lastOf returns the last of the errors that an error joins, else the error.
func lastOf(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if several, ok := e.(interface{ Unwrap() []error }); ok {
			all := several.Unwrap()
			return all[len(all)-1]
		}
	}
	return err
}

// BackOff returns the error of a caller that waits for the next try.
func (e *Error) BackOff() *Error {
	b := *e
	b.Reason, b.Err = ImagePullBackOff, &failure{fmt.Sprintf("Back-off pulling image %q: %s: %s", e.Image, e.Reason, e.Err), e.Err}
	return &b
}

// failure is an error with another text.
type failure struct {
	words string
	err   error
}

func (f *failure) Error() string { return f.words }
func (f *failure) Unwrap() error { return f.err }

// words is a sentence of the kubelet's that becomes a status as it is.
type words string

func (w words) Error() string { return string(w) }

// Normalize returns the reference with the tag that is meant if it has none. It returns an *Error
// if it is no image reference.
func Normalize(ref string) (string, error) {
	name, err := imagename.Parse(ref)
	if err != nil {
		text := words(fmt.Sprintf("Failed to apply default image tag %q: couldn't parse image name %q: %v", ref, ref, err))
		return "", &Error{Reason: InvalidName, Image: ref, Err: text, Retry: time.Now().Add(lookAgainForNames)}
	}
	if name.Tag == "" && name.Digest == "" {
		ref += ":latest"
	}
	return ref, nil
}

// repository returns the full name of a reference's repository, without tag or
// digest, such as docker.io/library/busybox; "" if it is no reference.
func repository(ref string) string {
	name, err := imagename.Parse(ref)
	if err != nil {
		return ""
	}
	return name.Repository()
}

// Canonical returns the full form of a reference, with the tag that is meant if it has none; "": it
// is no reference.
func Canonical(ref string) string { return canonical(ref) }

// canonical returns the full form of a reference, "" if it is none.
func canonical(ref string) string {
	name, err := imagename.Parse(ref)
	if err != nil {
		return ""
	}
	return name.Canonical()
}
