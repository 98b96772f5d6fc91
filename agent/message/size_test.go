package message

import "testing"

func TestSizes(t *testing.T) {
	for bytes, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 9949: "9.9 kB", 9950: "10 kB", 999499: "999 kB", 999500: "1.0 MB", 64e9: "64 GB", 1 << 63: "9223 PB"} {
		if got := string(Size(bytes)); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}
