package server

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheNodeAndWhatItUsesAreForAll(t *testing.T) {
	w := serve(t, func(c *Config) {
		page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.RawQuery) })
		c.Handlers = []Handler{{Path: "/stats/summary", Handler: page}}
	})
	for _, local := range []bool{true, false} {
		if code, _, _ := w.ask(t, local, "GET", "/node"); code != http.StatusServiceUnavailable {
			t.Errorf("before the first report: %d", code)
		}
	}
	w.store.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for _, local := range []bool{true, false} {
		code, body, _ := w.ask(t, local, "GET", "/node")
		var n v1.Node
		if err := json.Unmarshal([]byte(body), &n); err != nil || code != 200 || n.Name != "n1" {
			t.Errorf("%d %s: %v", code, body, err)
		}
		if code, body, _ := w.ask(t, local, "GET", "/stats/summary?a=b"); code != 200 || body != "a=b" {
			t.Errorf("a page: %d %s", code, body)
		}
		if code, _, _ := w.ask(t, local, "GET", "/metrics/resource"); code != 404 {
			t.Errorf("a page that nobody serves: %d", code)
		}
	}
}
