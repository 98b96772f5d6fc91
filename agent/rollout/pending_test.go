package rollout

import (
	"strings"
	"testing"
	"time"

	"monopod/agent/admission"
	"monopod/agent/message"
	"monopod/agent/prepare"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
)

func TestAVersionThatDoesNotRunAndWhy(t *testing.T) {
	const webHeld = "held: audit (`monopod release web` ends it)"
	lacks := func(all ...string) func(*Record) {
		return func(r *Record) {
			r.Now.Prepare, r.Prepared = r.Offered, prepare.State{Of: r.Offered, Lacks: lacking(all)}
		}
	}
	panicked := func(r *Record) { r.Now.Waits = []Wait{{By: ByFault, Text: message.Fixed("panic: poison")}} }
	gaveWay := func(r *Record) {
		r.Trial = &Trial{Former: v1st, Tried: v2nd, Pinned: v1st, Reason: "it crashed", Judged: true}
	}
	for _, row := range []struct {
		name  string
		is    Record
		world *World
		after func(*Record) // the decision
		want  string
	}{
		{"what runs is not among them", running(v1st), worldOf(), nil, ""},
		{"nor is what is removed", changed(running(v1st), held, gone), worldOf(), nil, ""},
		{"a hold", edited(v2nd, held), worldOf(), nil, "Hold: " + webHeld},
		{"all that is worth a word", edited(v2nd, lacks("there is no Secret a"), held), worldOf(full), nil, "Hold: " + webHeld + "; there is no Secret a; no cpu is left"},
		{"what is over in a moment is quiet", edited(v2nd, preparing), worldOf(), nil, "Preparing, quiet: the new version is being prepared"},
		{"a stopped pod, though it is the version that ran", changed(edited(v1st), stopped), worldOf(), nil, "Stopped: stopped by request; `monopod start` runs it again"},
		{"one that never ran", changed(running(v1st), fresh), worldOf(full), nil, "Room: no cpu is left"},
		{"one that never will", edited(v2nd), worldOf(), func(r *Record) { r.Now.Refused = &Refusal{Why: admission.Rejection{Reason: "PodOSNotSupported"}} },
			"Preparing, quiet, final: the new version is being prepared"},
		{"one on which nothing was decided yet", running(v1st), worldOf(), func(r *Record) { r.Now = Decision{} }, ""},
		{"one that runs, and goes on with its trial", running(v1st), worldOf(), func(r *Record) { r.Now.Waits = []Wait{{By: ByRoom}} }, ""},
		{"one that the disk does not take", running(v1st), worldOf(), func(r *Record) { r.Seen.Uncommitted = "no space left" }, "Saved: no space left"},
		{"one that does not run, and that the disk did not take before", edited(v2nd, prepared, held), worldOf(), func(r *Record) { r.Seen.Uncommitted = "no space left" }, "Hold: " + webHeld},
		{"a panic over what runs", running(v1st), worldOf(), panicked, "Fault: panic: poison"},
		{"one that gave way, beside the one that is back", running(v1st), worldOf(), gaveWay, "Trial, final: update rolled back: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := row.is
			r.Now = Decide(&r, row.world)
			if row.after != nil {
				row.after(&r)
			}
			var said []string
			for _, p := range r.Pending() {
				text := string(p.By)
				if p.Quiet {
					text += ", quiet"
				}
				if p.Final {
					text += ", final"
				}
				said = append(said, text+": "+p.Text.String())
			}
			if got := strings.Join(said, "\n"); got != row.want && !(strings.HasSuffix(row.want, "back: ") && strings.HasPrefix(got, row.want)) {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestTheVerdictOnAVersion(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	trial := func(t Trial) func(*Record) {
		return func(r *Record) { t.Former, t.Tried, r.Trial = v1st, v2nd, &t }
	}
	proven := func(r *Record) {
		r.Now.Run, r.Proof = r.Accepted, Proof{}.Saw(r.Accepted, update.Health{Seen: true, Ready: true}, now.Add(-10*time.Second), 10*time.Second)
	}
	for _, row := range []struct {
		name   string
		is     Record
		within time.Duration
		want   status.Trial
	}{
		{"none is asked for", changed(running(v1st), proven), 0, ""},
		{"it waits for its record", changed(running(v1st), trial(Trial{})), time.Minute, status.TrialOn},
		{"it runs", changed(running(v2nd), trial(Trial{Safe: true})), time.Minute, status.TrialOn},
		{"it is to give way, once that is on disk", changed(running(v2nd), trial(Trial{Safe: true, Reason: "it crashed"})), time.Minute, status.TrialOn},
		{"it gave way", changed(running(v1st), trial(Trial{Safe: true, Reason: "it crashed", Judged: true})), time.Minute, status.TrialFailed},
		{"there is nothing to go back to", changed(running(v2nd), trial(Trial{Unfit: true})), time.Minute, ""},
		{"it works", changed(running(v2nd), proven), time.Minute, status.TrialPassed},
		{"it was not ready for long enough", changed(running(v2nd)), time.Minute, ""},
	} {
		of, got := row.is.Judged(now, func(*manifests.Pod) update.Limits { return update.Limits{Within: row.within, Stable: 10 * time.Second} })
		if got != row.want || (of == nil) != (got == "") {
			t.Errorf("%s: %q of %v, want %q", row.name, got, of, row.want)
		}
	}
}
