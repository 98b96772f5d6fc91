package wake

import "testing"

func TestOnlyTheGoroutineOfANameIsWoken(t *testing.T) {
	var r Register[string]
	web, db := New(), New()
	r.Wake("web") // no goroutine works for it yet
	r.Add("web", web)
	r.Add("db", db)
	r.Wake("web")
	if len(web) != 1 || len(db) != 0 {
		t.Errorf("web is woken %d times, db %d times", len(web), len(db))
	}
}

func TestASuccessorKeepsItsSlotWhenItsPredecessorEnds(t *testing.T) {
	var r Register[string]
	former, next := New(), New()
	r.Add("web", former)
	r.Add("web", next)
	r.Remove("web", former)
	r.Wake("web")
	r.Remove("web", next)
	r.Wake("web")
	if len(former) != 0 || len(next) != 1 {
		t.Errorf("the former goroutine is woken %d times, the next one %d times", len(former), len(next))
	}
}
