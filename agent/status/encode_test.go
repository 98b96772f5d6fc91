package status

import (
	"runtime"
	"testing"
)

func TestAReportIsEncodedInTheRoomOfTheOneBefore(t *testing.T) {
	var e encoder
	m := someFiles(200)
	text, err := e.encode(m)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		if _, err := e.encode(m); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / 20
	if each > 2*uint64(len(text)) { // the race detector has a pool of the encoder's drop one in four
		t.Errorf("%d bytes allocated for a text of %d", each, len(text))
	}
}
