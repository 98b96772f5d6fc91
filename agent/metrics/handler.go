package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// AtOnce is how many scrapes a listener should serve at a time.
const AtOnce = 4

// formats are the supported formats; the first is the default. Protobuf is not: it is of use only
// for native histograms.
var formats = []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeOpenMetrics), expfmt.FmtOpenMetrics_0_0_1}

// Handler serves the metrics of a gatherer, as text or, on request, as OpenMetrics; nothing is
// compressed. It has no limit of its own: one would be shared by all listeners.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, DisableCompression: true, AcceptedFormats: formats})
}
