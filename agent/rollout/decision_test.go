package rollout

import (
	"testing"
	"time"

	"monopod/agent/admission"
	"monopod/agent/message"
	"monopod/agent/prepare"
)

// lacking is what a version lacks, in words.
func lacking(texts []string) (all []prepare.Lack) {
	for _, text := range texts {
		all = append(all, prepare.Lack{Text: text})
	}
	return all
}

func TestWhatIsTriedAgainHasATime(t *testing.T) {
	r := edited(v2nd, held, func(r *Record) {
		r.Now.Prepare = v2nd
		r.Prepared = prepare.State{Of: v2nd, Lacks: []prepare.Lack{{Text: "there is no Secret a"}, {Text: "image two cannot be pulled: no route to host", Next: noon.Wall.Add(40 * time.Second)}}}
	})
	d := Decide(&r, worldOf())
	if text, next := d.Tries(); text != "image two cannot be pulled: no route to host" || !next.Equal(noon.Wall.Add(40*time.Second)) {
		t.Errorf("%q is tried again at %s", text, next)
	}
	if _, next := new(Decision).Tries(); !next.IsZero() {
		t.Errorf("of nothing it says %s", next)
	}
}

func TestWhatIsWaitedForIsSaidInALine(t *testing.T) {
	lacks := func(all ...string) func(*Record) {
		return func(r *Record) {
			r.Now.Prepare, r.Prepared = r.Offered, prepare.State{Of: r.Offered, Lacks: lacking(all)}
		}
	}
	const webHeld = "held: audit (`monopod release web` ends it)"
	const pull = `image two cannot be pulled: no route to host`
	for _, row := range []struct {
		name  string
		is    Record
		world *World
		want  string
	}{
		{"nothing waits", running(v1st), worldOf(), ""},
		{"what it lacks is not known yet", edited(v2nd, preparing), worldOf(), ""},
		{"nor whether it is locked", edited(v2nd, prepared, unknown), worldOf(), ""},
		{"an image", edited(v2nd, lacks(pull)), worldOf(), "update waits: " + pull},
		{"what an earlier version lacked is not said", changed(edited(v2nd, lacks(pull)), func(r *Record) { r.Offered = labelled("three") }), worldOf(), ""},
		{"no room, which has an event of its own", edited(v2nd, prepared), worldOf(full), "update waits: no cpu is left"},
		{"all of it", edited(v2nd, lacks(pull, "there is no Secret a"), held), worldOf(full),
			"update waits: " + webHeld + "; " + pull + "; there is no Secret a; no cpu is left"},
		{"a removal", changed(running(v1st), held, gone), worldOf(), "removal waits: " + webHeld},
		{"a stopped pod says so itself", changed(edited(v2nd), stopped), worldOf(), ""},
		{"a pod that rests has no worker to say it", changed(running(v1st), fresh), worldOf(full), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := Decide(&row.is, row.world)
			if got := d.Line(); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

func TestWhatARestartWaitsForIsSaidInALine(t *testing.T) {
	for _, row := range []struct {
		name  string
		is    Record
		world *World
		want  string
	}{
		{"nothing is to restart", changed(running(v1st), held), worldOf(), ""},
		{"it may", changed(running(v1st), outdated), worldOf(), ""},
		{"it is not known yet whether it may", changed(running(v1st), outdated, unknown), worldOf(), ""},
		{"it is held", changed(running(v1st), outdated, held), worldOf(heldNode),
			"restart with the changed ConfigMap \"app\" waits: held: audit (`monopod release web` ends it); the node is held: a visit (`monopod release` ends it)"},
	} {
		d := Decide(&row.is, row.world)
		if got := d.RestartLine(); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	room := &Refusal{Of: v1st, Why: admission.Rejection{Reason: "OutOfcpu"}}
	for _, row := range []struct {
		name                         string
		is                           *Refusal
		final, retried, cpu, sameNow bool
	}{
		{"none", nil, false, false, false, false},
		{"room", room, false, true, true, true},
		{"the same in another object", &Refusal{Of: v1st, Why: admission.Rejection{Reason: "OutOfcpu"}}, false, true, true, true},
		{"room, of another version", &Refusal{Of: v2nd, Why: admission.Rejection{Reason: "OutOfcpu"}}, false, true, true, false},
		{"the operating system", &Refusal{Of: v1st, Why: admission.Rejection{Reason: "PodOSNotSupported"}}, true, false, false, false},
	} {
		d := Decision{Refused: row.is}
		if d.IsFinal() != row.final || d.IsRetried() != row.retried || d.IsRefusedFor("OutOfcpu") != row.cpu || row.is.Equal(room) != row.sameNow || room.Equal(row.is) != row.sameNow {
			t.Errorf("%s: final %v, retried %v, for its cpu %v, as before %v", row.name, d.IsFinal(), d.IsRetried(), d.IsRefusedFor("OutOfcpu"), row.is.Equal(room))
		}
	}
	if none := (*Refusal)(nil); !none.Equal(nil) {
		t.Error("nothing is not as nothing was")
	}
}

func TestWhatTheGateKeeps(t *testing.T) {
	waits := []Wait{{By: ByPreparing, Text: message.Fixed("it is being prepared")}, {By: ByHold, Text: message.Fixed("held")}, {By: ByWindow, Text: message.Fixed("at night")}}
	refused := &Refusal{Of: v2nd}
	for _, row := range []struct {
		name string
		is   Decision
		want string
	}{
		{"nothing", Decision{}, ""},
		{"a version that is prepared", Decision{Prepare: v2nd, Waits: waits}, "held; at night"},
		{"one that is prepared and refused", Decision{Prepare: v2nd, Refused: refused, Waits: waits}, "held; at night"},
		{"one that is refused says so itself", Decision{Refused: refused, Waits: waits}, ""},
		{"a removal", Decision{Removes: true, Waits: waits}, "held; at night"},
	} {
		if got := row.is.Gated(); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
