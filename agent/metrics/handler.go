package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// AtOnce is how many scrapes a listener should serve at a time.
const AtOnce = 4

// formats are the supported formats: text alone, which is all that a kubelet has for Prometheus. In
// OpenMetrics the same buckets would have other labels (le="1.0" for le="1"), and counters without
// _total in their name no type. Protobuf is of use only for native histograms.
var formats = []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain)}

// Handler serves the metrics of a gatherer, whatever format is asked for; nothing is compressed. It
// has no limit of its own: one would be shared by all listeners.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, DisableCompression: true, AcceptedFormats: formats})
}
