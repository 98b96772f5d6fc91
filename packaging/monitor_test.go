package packaging

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// served are the names of metrics, as the tests of those who serve them have recorded them.
func served(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{"up": true}
	for _, file := range []string{"../agent/metrics/testdata/metrics.txt", "../agent/stats/testdata/v1-cadvisor.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			name, rest, _ := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " ")
			name, _, _ = strings.Cut(name, "{")
			names[name] = true
			if strings.HasPrefix(rest, "histogram") {
				names[name+"_bucket"] = true
			}
		}
	}
	return names
}

// asked returns the names of metrics in an expression: what is no function, label or value.
func asked(expr string) (names []string) {
	expr = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|\b(by|on) \([^)]*\)|"[^"]*"`).ReplaceAllString(expr, " ")
	for _, m := range regexp.MustCompile(`\b([a-z_][a-z0-9_]*)\s*(\()?`).FindAllStringSubmatch(expr, -1) {
		if m[2] == "" && m[1] != "or" {
			names = append(names, m[1])
		}
	}
	return names
}

// Each metric that the alerts and the dashboard ask for is served.
func TestWhatIsWatchedIsServed(t *testing.T) {
	names := served(t)
	exprs := append(alerts(t), panels(t)...)
	if len(exprs) < 20 {
		t.Errorf("%d expressions", len(exprs))
	}
	for _, expr := range exprs {
		found := asked(expr)
		if len(found) == 0 {
			t.Errorf("%s asks for nothing", expr)
		}
		for _, name := range found {
			if !names[name] {
				t.Errorf("%s: nothing serves %s", expr, name)
			}
		}
	}
}

func alerts(t *testing.T) (exprs []string) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}
	read(t, "alerts.yaml", func(text []byte, to any) error { return yaml.Unmarshal(text, to) }, &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			exprs = append(exprs, r.Expr)
		}
	}
	return exprs
}

func panels(t *testing.T) (exprs []string) {
	t.Helper()
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	read(t, "grafana-dashboard.json", json.Unmarshal, &board)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	return exprs
}

func read(t *testing.T, file string, unmarshal func([]byte, any) error, to any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := unmarshal(text, to); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
