package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"monopod/agent/status"
)

// What manifests would change is told on the socket alone, which only root opens.
func TestOutlook(t *testing.T) {
	var asked string
	var answer error
	w := serve(t, func(c *Config) {
		c.Requests = []Request{Outlook(func(_ context.Context, request io.Reader) (any, error) {
			text, err := io.ReadAll(request)
			asked = string(text[:min(len(text), 20)])
			return map[string]int{"changes": 1}, errors.Join(answer, err)
		})}
	})
	for _, row := range []struct {
		name, method string
		local        bool
		request      string
		answer       error
		asked        string
		code         int
		body         string
	}{
		{"manifests", "POST", true, `{"pods":[]}`, nil, `{"pods":[]}`, 200, `{"changes":1}` + "\n"},
		{"not over TCP", "POST", false, `{"pods":[]}`, nil, "", 413, "requests have no body here\n"},
		{"nor without any", "POST", false, "", nil, "", 405, "this endpoint is read-only\n"},
		{"not by GET", "GET", true, "", nil, "", 404, "404 page not found\n"},
		{"a refusal", "POST", true, `{`, &status.Refusal{Why: "no pods"}, "{", 409, "no pods\n"},
		{"no time", "POST", true, `{}`, context.DeadlineExceeded, "{}", 503, "the agent did not answer within 20s: is it stuck?\n"},
		{"too much", "POST", true, strings.Repeat(" ", outlookMax+1), nil, strings.Repeat(" ", 20), 503, "http: request body too large\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked, answer = "", row.answer
			client := w.other
			if row.local {
				client = w.local
			}
			req, err := http.NewRequestWithContext(t.Context(), row.method, "http://"+w.Addr().String()+"/outlook", strings.NewReader(row.request))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != row.code || string(body) != row.body || asked != row.asked {
				t.Errorf("answer %d %q after %q, want %d %q after %q (%v)", resp.StatusCode, body, asked, row.code, row.body, row.asked, err)
			}
		})
	}
}
