package message

import (
	"testing"
	"time"
)

func TestATimeIsLocalWithItsZone(t *testing.T) {
	at := time.Date(2026, 11, 23, 20, 5, 49, 7, time.FixedZone("elsewhere", 3600))
	local := at.In(time.Local)
	zone, _ := local.Zone()
	if got, want := string(Time(at)), local.Format(time.DateTime)+" "+zone; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
