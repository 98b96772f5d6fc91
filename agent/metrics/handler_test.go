package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func scrape(h http.Handler, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/metrics", nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// prometheusAccepts is what Prometheus 3 sends.
const prometheusAccepts = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5," +
	"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"

func TestFormats(t *testing.T) {
	h := Handler(everything(t).Registry())
	rows := []struct{ name, accept, want string }{
		{"nothing asked for", "", "text/plain; version=0.0.4"},
		{"anything", "*/*", "text/plain; version=0.0.4"},
		{"a browser", "text/html,application/xhtml+xml,*/*;q=0.8", "text/plain; version=0.0.4"},
		{"Prometheus", prometheusAccepts, "text/plain; version=0.0.4"},
		{"Prometheus with native histograms", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7," + prometheusAccepts,
			"text/plain; version=0.0.4"},
		{"OpenMetrics alone", "application/openmetrics-text; version=1.0.0", "text/plain; version=0.0.4"},
		{"an old Prometheus", "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "text/plain; version=0.0.4"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := scrape(h, row.accept)
			if got := w.Header().Get("Content-Type"); w.Code != 200 || !strings.HasPrefix(got, row.want) {
				t.Errorf("%d, %s", w.Code, got)
			}
			body := w.Body.String()
			for _, line := range []string{ // as a kubelet writes them
				`kubelet_containers_per_pod_count_bucket{le="1"} `,
				"# TYPE kubelet_evented_pleg_connection_error_count counter\n",
			} {
				if !strings.Contains(body, line) {
					t.Errorf("it lacks %q", line)
				}
			}
		})
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(scrape(h, "").Body)
	if err != nil || families["kubelet_node_name"] == nil {
		t.Errorf("text is not understood: %v", err)
	}
}

// gathers is a gatherer.
type gathers func() ([]*dto.MetricFamily, error)

func (g gathers) Gather() ([]*dto.MetricFamily, error) { return g() }

func TestWhatCannotBeGatheredIsLeftOut(t *testing.T) {
	name, value := "a", 1.0
	some := []*dto.MetricFamily{{Name: &name, Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &value}}}}}
	for _, row := range []struct {
		name     string
		families []*dto.MetricFamily
		code     int
		body     string
	}{{"all", nil, 500, "An error has occurred while serving metrics:\n\nbroken\n"}, {"one", some, 200, "# TYPE a gauge\na 1\n"}} {
		t.Run(row.name, func(t *testing.T) {
			w := scrape(Handler(gathers(func() ([]*dto.MetricFamily, error) { return row.families, errors.New("broken") })), "")
			if w.Code != row.code || w.Body.String() != row.body {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		})
	}
}
