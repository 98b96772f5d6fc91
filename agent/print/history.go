package print

import (
	"bytes"
	"io"
	"strings"
	"time"

	"monopod/agent/status"
)

// hashShown is how much of a version's hash is shown: enough to distinguish it from others, and to
// name it.
const hashShown = 8

// History prints a table of the versions of a pod.
func History(w io.Writer, h *status.History, f Format) error {
	t := &Table{columns: f.Columns, spare: []spare{{4, "FILE"}, {3, "IMAGES"}}}
	t.Line("HASH", "READY SINCE", "LAST READY", "IMAGES", "FILE", "IS")
	for k := range h.Versions {
		v := &h.Versions[k]
		t.Line(ShortHash(v.Hash), past(v.ReadySince, f.Now), lastReady(v, f.Now), strings.Join(v.Images, ","), v.File, marks(v))
	}
	var out bytes.Buffer
	t.Print(&out)
	_, err := w.Write(out.Bytes())
	return err
}

// ShortHash returns the name of a version.
func ShortHash(hash string) string { return hash[:min(len(hash), hashShown)] }

func past(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return Ago(*t, now)
}

func lastReady(v *status.PastVersion, now time.Time) string {
	if v.Ready {
		return "now"
	}
	return past(v.LastReady, now)
}

// marks returns what a version is now.
func marks(v *status.PastVersion) string {
	var all []string
	for _, mark := range []struct {
		is   bool
		text string
	}{
		{v.Running, "running"}, {v.ComesBack, "comes back"}, {v.Manifest, "in the manifest"},
		{v.RolledBack != "", "rolled back: " + v.RolledBack},
	} {
		if mark.is {
			all = append(all, mark.text)
		}
	}
	return strings.Join(all, "; ")
}
