package wake

import "testing"

func TestManyWakesAreOneLook(t *testing.T) {
	s := New()
	s.Wake()
	s.Wake()
	<-s
	select {
	case <-s:
		t.Error("the slot holds two wakes")
	default:
	}
	s.Wake()
	if len(s) != 1 {
		t.Error("a wake after a look is lost")
	}
}
