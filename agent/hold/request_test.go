package hold

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"monopod/agent/events"
	"monopod/agent/status"
	"monopod/manifests"
)

// A pod that a manifest gives can be stopped, held and started before it has a status; one that there
// is not cannot.
func TestAPodWithoutStatusYetCanBeAskedFor(t *testing.T) {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	pods, err := status.Open(filepath.Join(t.TempDir(), "status"), log)
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Close(context.Background())
	web := manifests.Key{Namespace: "default", Name: "web"}
	r := &Requests{Store: &Store{}, Pods: pods, Desired: func(key manifests.Key) bool { return key == web }, Changed: func() {},
		Events: events.Open(events.Config{Log: log}), Log: log, Node: "n"}
	for verb, do := range map[string]func(manifests.Key) error{
		"stop":  func(key manifests.Key) error { return r.Stop(t.Context(), key, nil) },
		"start": func(key manifests.Key) error { return r.Start(t.Context(), key, nil) },
		"hold":  func(key manifests.Key) error { return r.Hold(t.Context(), key, nil) },
	} {
		if err := do(web); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
		if err := do(manifests.Key{Namespace: "default", Name: "none"}); err == nil || !strings.Contains(err.Error(), "there is no pod default/none") {
			t.Errorf("%s of a pod that there is not: %v", verb, err)
		}
	}
}
