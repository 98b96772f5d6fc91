package stats

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"monopod/agent/status"
)

// Pages returns the pages, by path. None of them holds a secret: the runtime's own error text is
// only logged.
func (c *Collector) Pages() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/stats/summary":    c.serveSummary,
		"/metrics/resource": func(w http.ResponseWriter, r *http.Request) { c.serveText(w, r, c.Resource) },
		"/metrics/cadvisor": func(w http.ResponseWriter, r *http.Request) { c.serveText(w, r, c.Cadvisor) },
	}
}

func (c *Collector) serveSummary(w http.ResponseWriter, r *http.Request) {
	little := false
	if text := r.FormValue("only_cpu_and_memory"); text != "" {
		var err error
		if little, err = strconv.ParseBool(text); err != nil {
			http.Error(w, "only_cpu_and_memory="+strconv.Quote(text)+": choose true or false", http.StatusBadRequest)
			return
		}
	}
	sum, err := c.Summary(r.Context(), !little)
	if err != nil {
		c.unavailable(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(sum)
}

func (c *Collector) serveText(w http.ResponseWriter, r *http.Request, make func(context.Context) ([]byte, error)) {
	b, err := make(r.Context())
	if err != nil {
		c.unavailable(w, err)
		return
	}
	w.Header().Set("Content-Type", textType)
	w.Write(b)
}

func (c *Collector) unavailable(w http.ResponseWriter, err error) {
	c.config.Log.Debug("usage cannot be read", "err", err)
	http.Error(w, "usage cannot be read: try again", http.StatusServiceUnavailable)
}

// ServeHTTP answers with the trends of all pods, a list of status.Trend.
func (t *Trends) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	trends := t.Of()
	all := make([]status.Trend, 0, len(trends))
	for _, uid := range slices.Sorted(maps.Keys(trends)) {
		all = append(all, trends[uid])
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(all)
}
