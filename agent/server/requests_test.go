package server

import (
	"context"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"monopod/agent/status"
)

// An agent that has just started knows of no pods yet: what it says of them then would not be true.
func TestRequestsWaitUntilTheAgentKnowsItsPods(t *testing.T) {
	for _, row := range []struct {
		name  string
		after time.Duration
		code  int
		body  string
	}{
		{"it does at last", changeTimeout - time.Second, 200, `{"pod":"a/b"}` + "\n"},
		{"it does not", changeTimeout + time.Second, 503, "the agent has only just started and has not read its manifests within 20s: does their disk answer?\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				known, answer := make(chan struct{}), httptest.NewRecorder()
				s := &Server{config: Config{PodsKnown: known}}
				early := false
				q := Forget(func(context.Context, string, string) (*status.Forgotten, error) {
					select {
					case <-known:
					default:
						early = true
					}
					return &status.Forgotten{Pod: "a/b"}, nil
				})
				go q.serve(s, true, answer, httptest.NewRequest("POST", "/forget/a/b", nil))
				time.Sleep(row.after)
				close(known)
				synctest.Wait()
				if early || answer.Code != row.code || answer.Body.String() != row.body {
					t.Errorf("answer %d %q, before the pods are known: %v", answer.Code, answer.Body, early)
				}
			})
		})
	}
}

// Images can be asked for at any time: somebody may load what the pods need.
func TestRequestsAboutImagesDoNotWaitForThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := httptest.NewRecorder()
		q := OfImages("pull", func(context.Context, url.Values) (any, error) { return "pulled", nil })
		q.serve(&Server{config: Config{PodsKnown: make(chan struct{})}}, true, answer, httptest.NewRequest("POST", "/images/pull", nil))
		if answer.Code != 200 {
			t.Errorf("answer %d %q", answer.Code, answer.Body)
		}
	})
}
