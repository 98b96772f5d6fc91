package defaults

import "time"

// forever is longer than any pod runs. The sum of two such durations does not overflow.
const forever = 100 * 365 * 24 * time.Hour

// Seconds returns a number of seconds of a manifest, such as a grace period, as a duration: at most
// a hundred years, as large numbers, which mean that there is no limit, would overflow.
func Seconds(s int64) time.Duration {
	return time.Duration(min(max(s, 0), int64(forever/time.Second))) * time.Second
}
