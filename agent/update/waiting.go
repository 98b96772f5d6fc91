package update

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"monopod/agent/image"
	"monopod/manifests"
)

// Reasons of the events about an update, or a restart for changed config, that does not happen at
// once.
const (
	ReasonWaits        = "UpdateWaits"
	ReasonContinues    = "UpdateContinues"
	ReasonRestartWaits = "RestartWaits"
)

// Wait is what the next version of a pod waits for while the present one runs.
type Wait struct {
	Next  *manifests.Pod // nil: no version waits
	Ready bool           // it has all that it needs, beside its place on the node

	Gated string // see rollout: of the next version, or of the removal of the present one; "": nothing

	reasons []string
	failed  bool // it waits for more than the end of pulls
	told    bool
}

// Lack is an image that a version still needs.
type Lack struct {
	Image string
	Err   error // why the last pull failed; nil: the first one runs
}

// Look takes over what the next version lacks. images: the first that is not there;
// nil: all are. missing: an object that it refers to; refused: why it has no place on
// the node; "": nothing.
func (w *Wait) Look(images *Lack, missing, refused string) {
	w.reasons, w.failed = nil, missing != "" || w.Gated != ""
	if images != nil {
		w.failed = w.failed || images.Err != nil
		w.reasons = append(w.reasons, images.text())
	}
	if missing != "" {
		w.reasons = append(w.reasons, missing)
	}
	w.Ready = w.Next != nil && len(w.reasons) == 0
	if refused != "" { // which has an event of its own
		w.told = true
		w.reasons = append(w.reasons, refused)
	}
}

func (l *Lack) text() string {
	var i *image.Error
	switch {
	case l.Err == nil:
		return fmt.Sprintf("image %q is being pulled", l.Image)
	case errors.As(l.Err, &i):
		return fmt.Sprintf("image %q: %s: %s", l.Image, i.Reason, i)
	}
	return fmt.Sprintf("image %q: %s", l.Image, l.Err)
}

// Line says what the next version waits for; "": nothing waits.
func (w *Wait) Line() string {
	reasons, what := w.reasons, "update waits: "
	if w.Gated != "" {
		reasons = slices.Concat([]string{w.Gated}, reasons)
		if w.Next == nil {
			what = "removal waits: "
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return what + strings.Join(reasons, "; ")
}

// Tell reports, once, that the version waits for more than the end of its pulls.
func (w *Wait) Tell() bool {
	tell := w.failed && !w.told
	w.told = w.told || tell
	return tell
}

// Told reports whether it was told that the version waits.
func (w *Wait) Told() bool { return w.told }
