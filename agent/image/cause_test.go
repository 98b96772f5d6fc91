package image

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"monopod/cri/critest"
)

// What a runtime says of a pull is the chain of its calls, each with the image's name.
func TestWhyAnImageCannotBePulledIsShort(t *testing.T) {
	const image = "docker.example/x:1"
	const resolve = `failed to pull and unpack image "docker.example/x:1": failed to resolve reference "docker.example/x:1": `
	for _, row := range []struct {
		what, said, want string
		code             codes.Code
	}{
		{"a registry that does not listen", resolve + `failed to do request: Head "https://docker.example/v2/x/manifests/1": dial tcp 10.0.0.1:443: connect: connection refused`, "connection refused", codes.Unknown},
		{"no such image", resolve + "docker.example/x:1: not found", "not found", codes.NotFound},
		{"no such repository, or no credentials", resolve + "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
			"pull access denied, repository does not exist or may require authorization", codes.Unknown},
		{"too many pulls", resolve + "unexpected status code https://docker.example/v2/x/manifests/1: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit",
			"You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit", codes.Unknown},
		{"a certificate of an unknown authority", resolve + `failed to do request: Head "https://docker.example/v2/x/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
			"certificate signed by unknown authority", codes.Unknown},
		{"CRI-O", "reading manifest 1 in docker.example/x: manifest unknown", "manifest unknown", codes.Unknown},
		{"a page alone", "https://docker.example/help", "PullImage docker.example/x:1: https://docker.example/help", codes.Unknown},
	} {
		bubble(t, 1, func(t *testing.T, r *critest.Runtime, p *Puller) {
			r.OnPull(image, 0, status.Error(row.code, row.said))
			_, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: image})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%s: %v", row.what, err)
			}
			want := "image docker.example/x:1 cannot be pulled: " + row.want
			if got, later := e.Words(), e.BackOff().Words(); got != want || later != want {
				t.Errorf("%s:\n got  %q\n and  %q\n want %q", row.what, got, later, want)
			}
		})
	}
}

func TestErrorsOfTheAgentAreWhole(t *testing.T) {
	called := func(text string) error { return scrub(status.Error(codes.Unknown, text), Auth{}) }
	for _, row := range []struct {
		what string
		err  error
		want string
	}{
		{"no call", errors.New("no room: 3 GB are missing"), "no room: 3 GB are missing"},
		{"no name and password", errors.New(`Get "https://user:p@ss@docker.example/v2/": EOF`), `Get "https://docker.example/v2/": EOF`},
		{"several credentials", together([]error{called("a: unauthorized"), called("b: denied")}), "denied"},
	} {
		e := &Error{Reason: ErrImagePull, Image: "x", Err: row.err}
		if got, later := e.Words(), e.BackOff().Words(); got != "image x cannot be pulled: "+row.want || later != got {
			t.Errorf("%s: %q and %q, want %q", row.what, got, later, row.want)
		}
	}
}
