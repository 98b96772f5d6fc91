package logrotate

import (
	"testing"
	"time"
)

// What counts may change while a Rotator runs, and does so at once.
func TestLimitsChangeWhileItRuns(t *testing.T) {
	on(t, func(b *bench) {
		b.run("c", b.dir)
		b.write("c", 0, 20)
		r := b.start(Config{MaxSize: -1})
		after(time.Hour)
		if b.reopened != 0 {
			t.Fatalf("rotated %d times though logs are not to be", b.reopened)
		}
		r.Set(Config{MaxSize: 10_000, Interval: time.Hour})
		after(time.Second)
		if b.reopened != 0 {
			t.Errorf("rotated %d times though there is room", b.reopened)
		}
		r.Set(Config{MaxSize: 1000, Interval: 10 * time.Second})
		after(time.Second)
		if b.reopened != 1 {
			t.Errorf("rotated %d times when there is no room any more", b.reopened)
		}
		b.write("c", 20, 20)
		after(10 * time.Second)
		if b.reopened != 2 {
			t.Errorf("rotated %d times after the new interval", b.reopened)
		}
		r.Set(Config{MaxSize: -1})
		b.write("c", 40, 20)
		after(time.Hour)
		if b.reopened != 2 {
			t.Errorf("rotated %d times though logs are not to be any more", b.reopened)
		}
	})
}
