package metrics

import (
	"bufio"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Bounds of scrapes. Prometheus itself gives up after 10 s.
const (
	scrapesAtOnce = 4
	scrapeIn      = 10 * time.Second
)

// formats are the supported formats; the first is the default.
var formats = []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeOpenMetrics), expfmt.FmtOpenMetrics_0_0_1}

// Handler serves what a gatherer has, as text or, where the request asks for it,
// as OpenMetrics; nothing is compressed. It serves few requests at once; the
// others wait, and a client that reads too slowly is cut off. (promhttp does the
// same, and compression and the protobuf formats, with 0.3 MB more in the
// binary.)
func Handler(g prometheus.Gatherer) http.Handler {
	slots := make(chan struct{}, scrapesAtOnce)
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
		families, err := g.Gather()
		if err != nil && len(families) == 0 {
			http.Error(w, "metrics: "+err.Error(), http.StatusInternalServerError)
			return
		}
		// Not every writer can do this: others have the server's own limit.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(scrapeIn))
		format := expfmt.NegotiateAccept(r.Header, formats...)
		w.Header().Set("Content-Type", string(format))
		w.Header().Add("Vary", "Accept")
		if err := write(w, families, format); err != nil {
			panic(http.ErrAbortHandler) // the client is gone, and half of it must not look whole
		}
	})
}

// write writes the families.
func write(w io.Writer, families []*dto.MetricFamily, format expfmt.Format) error {
	out := bufio.NewWriter(w)
	open := format.FormatType() == expfmt.TypeOpenMetrics
	for _, f := range families {
		var err error
		if open {
			_, err = expfmt.MetricFamilyToOpenMetrics(out, f)
		} else {
			_, err = expfmt.MetricFamilyToText(out, f)
		}
		if err != nil {
			return err
		}
	}
	if open {
		if _, err := expfmt.FinalizeOpenMetrics(out); err != nil {
			return err
		}
	}
	return out.Flush()
}
