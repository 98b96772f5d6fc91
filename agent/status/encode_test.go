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
	if each := (after.TotalAlloc - before.TotalAlloc) / 20; each > uint64(len(text)) {
		t.Errorf("%d bytes allocated for a text of %d", each, len(text))
	}
}
