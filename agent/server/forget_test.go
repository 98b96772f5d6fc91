package server

import (
	"context"
	"errors"
	"testing"

	"monopod/agent/status"
)

func TestForget(t *testing.T) {
	var asked string
	var answer error
	w := serve(t, func(c *Config) {
		c.Requests = []Request{Forget(func(_ context.Context, namespace, pod string) (*status.Forgotten, error) {
			asked = namespace + " " + pod
			return &status.Forgotten{Pod: namespace + "/" + pod}, answer
		})}
	})
	rows := []struct {
		name, method, path string
		local              bool
		answer             error
		asked              string
		code               int
		body               string
	}{
		{"a pod", "POST", "/forget/default/web-n", true, nil, "default web-n", 200, `{"pod":"default/web-n"}` + "\n"},
		{"not over TCP", "POST", "/forget/default/web-n", false, nil, "", 405, "this endpoint is read-only\n"},
		{"not by GET", "GET", "/forget/default/web-n", true, nil, "", 404, "404 page not found\n"},
		{"not by DELETE", "DELETE", "/forget/default/web-n", true, nil, "", 405, "this endpoint is read-only\n"},
		{"no pod", "POST", "/forget/default", true, nil, "", 404, "404 page not found\n"},
		{"no name", "POST", "/forget/default/", true, nil, "", 404, "404 page not found\n"},
		{"a container", "POST", "/forget/default/web-n/c", true, nil, "", 404, "404 page not found\n"},
		{"an object", "POST", "/forget/default/configmap/app", true, nil, "default configmap/app", 200, `{"pod":"default/configmap/app"}` + "\n"},
		{"a secret", "POST", "/forget/default/secret/app", true, nil, "default secret/app", 200, `{"pod":"default/secret/app"}` + "\n"},
		{"an object without a name", "POST", "/forget/default/secret/", true, nil, "", 404, "404 page not found\n"},
		{"an unknown pod", "POST", "/forget/a/b", true, &status.Refusal{Unknown: true, Why: "there is no pod a/b"}, "a b", 404, "there is no pod a/b\n"},
		{"a refusal", "POST", "/forget/a/b", true, &status.Refusal{Why: "its manifest is /m/b.yaml: remove that file"}, "a b", 409, "its manifest is /m/b.yaml: remove that file\n"},
		{"trouble", "POST", "/forget/a/b", true, errors.New("no space left on device"), "a b", 503, "no space left on device\n"},
		{"no time", "POST", "/forget/a/b", true, context.DeadlineExceeded, "a b", 503,
			"the manifests could not be looked through within 20s: does their disk answer?\n"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			asked, answer = "", r.answer
			code, body, _ := w.ask(t, r.local, r.method, r.path)
			if code != r.code || body != r.body || asked != r.asked {
				t.Errorf("answer %d %q after asking for %q, want %d %q after %q", code, body, asked, r.code, r.body, r.asked)
			}
		})
	}
}
