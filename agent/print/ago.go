package print

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// unknownTime is printed in place of a time that is not known (kubectl: the same).
const unknownTime = "<unknown>"

// KnownTime reports whether a reported time is meaningful at now: what never happened has the zero
// time or, as reported by a kubelet, that of 1970; what happened before the machine's clock was
// set is of 1970, too.
func KnownTime(t, now time.Time) bool {
	const unset = 1970
	return t.Unix() > 0 && (t.UTC().Year() > unset || now.UTC().Year() <= unset)
}

// Ago returns how long ago a time is, as in "5m", or a word if that is not known.
func Ago(t, now time.Time) string {
	if !KnownTime(t, now) {
		return unknownTime
	}
	return duration.HumanDuration(max(now.Sub(t), 0)) // the clock may have been set back
}
