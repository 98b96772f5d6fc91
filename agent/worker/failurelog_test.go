package worker

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestFailuresThatComeInTurnAreLoggedWithABackOff(t *testing.T) {
	var l failureLog
	now := time.Now()
	fails := func(text string, every, lasts time.Duration) (lines int) {
		for end := now.Add(lasts); now.Before(end); now = now.Add(every) {
			if l.isNews(errors.New(text), now) {
				lines++
			}
		}
		return lines
	}
	if n := fails("a", 10*time.Second, time.Hour); n != 1 {
		t.Errorf("one that stays is logged %d times", n)
	}
	if n := fails("b", 10*time.Second, time.Minute); n != 1 {
		t.Errorf("another one is logged %d times", n)
	}
	lines := 0
	for k := range 360 {
		lines += fails(fmt.Sprint("stop ", k), 5*time.Second, 5*time.Second)
		lines += fails("run", 5*time.Second, 5*time.Second)
	}
	if lines < 12 || lines > 30 {
		t.Errorf("those that come in turn are logged %d times an hour", lines)
	}
	if n := fails("b", 10*time.Second, mostSilence+10*time.Second); n != 1 {
		t.Errorf("one that stays after them is logged %d times", n)
	}
	now = now.Add(forgotten + time.Second)
	if n := fails("b", 10*time.Second, time.Minute); n != 1 {
		t.Errorf("the same one after a good time is logged %d times", n)
	}
	if n := fails("c", 10*time.Second, time.Minute); n != 1 {
		t.Errorf("another one after that is logged %d times", n)
	}
}
