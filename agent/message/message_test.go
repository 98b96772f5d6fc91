package message

import (
	"testing"
	"time"
)

func TestATextHasTwoForms(t *testing.T) {
	rows := []struct {
		name          string
		text          Text
		whole, public string
	}{
		{"fixed words", Fixed("Container started"), "Container started", "Container started"},
		{"what somebody else says", Private("password is fish"), "password is fish", "<elided>"},
		{"nothing", Private(""), "", ""},
		{"the zero text", Text{}, "", ""},
		{"a name", Of("Stopping container %s", Name("app")), "Stopping container app", "Stopping container app"},
		{"what somebody else says, quoted", Of("%s probe failed: %q", Name("Readiness"), Private("fish")), `Readiness probe failed: "fish"`, `Readiness probe failed: "<elided>"`},
		{"numbers and times", Of("%d bytes in %s", Number(7), Duration(1500*time.Millisecond)), "7 bytes in 1.5s", "7 bytes in 1.5s"},
		{"a text in a text", Of("a: %s", Of("b %s", Private("fish"))), "a: b fish", "a: b <elided>"},
		{"a verb in a part is none", Of("a: %s", Private("100%d")), "a: 100%d", "a: <elided>"},
		{"some in a row", Join([]Text{Fixed("a"), Private("fish")}, "; "), "a; fish", "a; <elided>"},
		{"none in a row", Join(nil, "; "), "", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if row.text.String() != row.whole || row.text.Public() != row.public {
				t.Errorf("%q, in public %q; want %q and %q", row.text.String(), row.text.Public(), row.whole, row.public)
			}
		})
	}
}

// What is not in the book is not shown, whatever it looks like.
func TestABookShowsOnlyWhatWasNoted(t *testing.T) {
	b := Book{}
	for _, said := range []Text{Of("waits for %s", Private("fish")), Fixed("it is stopped"), Private("fish")} {
		if got := b.Note(said); got != said.String() {
			t.Errorf("%q is noted as %q", said, got)
		}
	}
	for whole, want := range map[string]string{"waits for fish": "waits for <elided>", "it is stopped": "it is stopped", "fish": Mark, "waits for bird": Mark, "": ""} {
		if got := b.Public(whole); got != want {
			t.Errorf("%q is shown as %q, want %q", whole, got, want)
		}
	}
	var none Book
	if got := none.Note(Fixed("a")); got != "a" || none.Public("a") != Mark {
		t.Errorf("no book notes %q and shows %q", got, none.Public("a"))
	}
}
