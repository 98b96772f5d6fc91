package metrics

import (
	"os"
	"syscall"
	"time"
)

// ChangeOf returns when a file got its content or its name; zero if that was before start or is
// not known.
func ChangeOf(file string, start time.Time) time.Time {
	fi, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	at := time.Unix(st.Ctim.Unix())
	if at.Before(start) || at.After(time.Now()) {
		return time.Time{}
	}
	return at
}
