package status

import (
	"math"
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
	least := uint64(math.MaxUint64) // the race detector has a pool of encoding/json's drop one in four
	for range 20 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := e.encode(m); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if least > uint64(len(text))/2 {
		t.Errorf("%d bytes allocated for a text of %d", least, len(text))
	}
}
