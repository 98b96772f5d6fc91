package server

import (
	"context"
	"testing"

	"monopod/agent/status"
)

func TestHistory(t *testing.T) {
	var asked string
	var answer error
	w := serve(t, func(c *Config) {
		c.Requests = []Request{History(func(_ context.Context, namespace, pod string) (*status.History, error) {
			asked = namespace + " " + pod
			return &status.History{Pod: namespace + "/" + pod, Versions: []status.PastVersion{{Hash: "1", File: "/m/web.yaml", Images: []string{"img:1"}, Running: true}}}, answer
		})}
	})
	for _, r := range []struct {
		name   string
		local  bool
		answer error
		asked  string
		code   int
		body   string
	}{
		{"a pod", true, nil, "default web-n", 200, `{"pod":"default/web-n","versions":[{"hash":"1","file":"/m/web.yaml","images":["img:1"],"running":true}]}` + "\n"},
		{"not over TCP", false, nil, "", 404, "404 page not found\n"},
		{"an unknown pod", true, &status.Refusal{Unknown: true, Why: "there is no pod default/web-n"}, "default web-n", 404, "there is no pod default/web-n\n"},
		{"no time", true, context.DeadlineExceeded, "default web-n", 503, "the agent did not answer within 20s: is it stuck?\n"},
	} {
		t.Run(r.name, func(t *testing.T) {
			asked, answer = "", r.answer
			code, body, _ := w.ask(t, r.local, "GET", "/history/default/web-n")
			if code != r.code || body != r.body || asked != r.asked {
				t.Errorf("answer %d %q after asking for %q, want %d %q after %q", code, body, asked, r.code, r.body, r.asked)
			}
		})
	}
}
