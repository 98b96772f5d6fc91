package print

import (
	"strings"
	"testing"

	"monopod/agent/status"
)

// Of several folders each file says because of which other one it has no effect.
func TestLayeredFilesSayWhichWins(t *testing.T) {
	files := []status.File{
		{Path: "/usr/web.yaml", State: status.Superseded, Versions: []status.Version{{Pod: "default/web", State: status.Superseded, By: "/etc/mine.yaml"}},
			Objects: []status.Object{{Kind: "ConfigMap", Name: "default/app", State: status.Superseded, By: "/etc/app.yaml"}}},
		{Path: "/usr/db.yaml", State: status.Masked, MaskedBy: "/etc/db.yaml"},
		{Path: "/usr/twice.yaml", Versions: []status.Version{{Pod: "default/web", State: status.Superseded, By: "/usr/web.yaml", Reason: "said as a problem"}}},
	}
	var got []string
	l := Listing{Manifests: status.Manifests{Dir: "/usr", Dirs: []string{"/usr", "/etc"}, Files: files}}
	for _, f := range files {
		got = append(got, layerWords(f, l.Manifests)...)
	}
	want := "/usr/web.yaml: /etc/mine.yaml gives default/web, too, and wins|/usr/web.yaml: /etc/app.yaml gives configmap/default/app, too, and wins|/usr/db.yaml: masked by /etc/db.yaml"
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	l.Manifests.Dirs = nil
	if words := layerWords(files[0], l.Manifests); words != nil {
		t.Errorf("of one folder it says %v", words)
	}
}
