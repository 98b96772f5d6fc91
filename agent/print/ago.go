package print

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// unknownTime is what is said in the place of a time that is not known (kubectl: the same).
const unknownTime = "<unknown>"

// KnownTime reports whether a reported time tells when something was, as seen now: what
// never was has the zero time or, where a kubelet reports so, that of 1970; and of 1970 is
// also what happened before the machine's clock was set.
func KnownTime(t, now time.Time) bool {
	const unset = 1970
	return t.Unix() > 0 && (t.UTC().Year() > unset || now.UTC().Year() <= unset)
}

// Ago is for how long something has been so, as in "5m", in a word if that is not known.
func Ago(t, now time.Time) string {
	if !KnownTime(t, now) {
		return unknownTime
	}
	return duration.HumanDuration(now.Sub(t))
}
