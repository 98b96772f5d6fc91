package image

import (
	"errors"
	"testing"
)

func TestWhyAnImageCannotBePulledIsShort(t *testing.T) {
	for _, row := range []struct{ what, err, want string }{
		{"the end of a chain of calls", `rpc error: code = Unavailable desc = failed to pull and unpack image "docker.example/x:1": failed to do request: Head "https://docker.example/v2/x": dial tcp 10.0.0.1:443: connect: connection refused`,
			"connection refused"},
		{"other errors are whole", "no room: 3 GB are missing", "no room: 3 GB are missing"},
		{"no name and password", `Get "https://user:p@ss@docker.example/v2/": EOF`, `Get "https://docker.example/v2/": EOF`},
	} {
		e := &Error{Reason: ErrImagePull, Image: "docker.example/x:1", Err: errors.New(row.err)}
		want := "image docker.example/x:1 cannot be pulled: " + row.want
		if got, later := e.Words(), e.BackOff().Words(); got != want || later != want {
			t.Errorf("%s:\n got  %q\n and  %q\n want %q", row.what, got, later, want)
		}
	}
}
