package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// Bounds of scrapes. Prometheus itself gives up after 10 s.
const (
	scrapesAtOnce = 4
	scrapeIn      = 10 * time.Second
)

// formats are the supported formats; the first is the default. Protobuf is none:
// it is of use for native histograms alone.
var formats = []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeOpenMetrics), expfmt.FmtOpenMetrics_0_0_1}

// Handler serves what a gatherer has, as text or, where the request asks for it,
// as OpenMetrics; nothing is compressed. It serves few requests at once; the
// others wait (those of promhttp's MaxRequestsInFlight would fail at once), and a
// client that reads too slowly is cut off.
func Handler(g prometheus.Gatherer) http.Handler {
	slots := make(chan struct{}, scrapesAtOnce)
	next := promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, DisableCompression: true, AcceptedFormats: formats})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		until := time.NewTimer(scrapeIn)
		defer until.Stop()
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-until.C:
			http.Error(w, "too many scrapes at once: try again", http.StatusServiceUnavailable)
			return
		case <-r.Context().Done():
			return
		}
		// Not every writer can do this: others have the server's own limit.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(scrapeIn))
		next.ServeHTTP(w, r)
	})
}
