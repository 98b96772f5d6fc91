package server

import (
	"context"
	"errors"
	"testing"

	"monopod/agent/status"
)

func TestRestart(t *testing.T) {
	var asked string
	var answer error
	w := serve(t, func(c *Config) {
		c.Requests = []Request{Restart(func(_ context.Context, namespace, pod, container string) (*status.Restart, error) {
			asked = namespace + " " + pod + " " + container
			return &status.Restart{Pod: namespace + "/" + pod, UID: "u", Replaces: map[string]string{"c": "id"}}, answer
		})}
	})
	const done = `{"pod":"default/web-n","uid":"u","replaces":{"c":"id"}}` + "\n"
	rows := []struct {
		name, method, path string
		local              bool
		answer             error
		asked              string
		code               int
		body               string
	}{
		{"a pod", "POST", "/restart/default/web-n", true, nil, "default web-n ", 200, done},
		{"a container", "POST", "/restart/default/web-n/c", true, nil, "default web-n c", 200, done},
		{"not over TCP", "POST", "/restart/default/web-n", false, nil, "", 405, "this endpoint is read-only\n"},
		{"not by GET", "GET", "/restart/default/web-n", true, nil, "", 404, "404 page not found\n"},
		{"not by PUT", "PUT", "/restart/default/web-n", true, nil, "", 405, "this endpoint is read-only\n"},
		{"no pod", "POST", "/restart/default", true, nil, "", 404, "404 page not found\n"},
		{"too much", "POST", "/restart/a/b/c/d", true, nil, "", 404, "404 page not found\n"},
		{"an unknown pod", "POST", "/restart/a/b", true, &status.Refusal{Unknown: true, Why: "there is no pod a/b"}, "a b ", 404, "there is no pod a/b\n"},
		{"a refusal", "POST", "/restart/a/b", true, &status.Refusal{Why: "pod a/b has ended"}, "a b ", 409, "pod a/b has ended\n"},
		{"trouble", "POST", "/restart/a/b", true, errors.New("no space left on device"), "a b ", 503, "no space left on device\n"},
		{"no time", "POST", "/restart/a/b", true, context.DeadlineExceeded, "a b ", 503,
			"the agent did not take up the restart within 20s, and drops it: does the runtime answer?\n"},
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
