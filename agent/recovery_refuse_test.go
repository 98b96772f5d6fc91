package agent

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"monopod/cri/critest"
)

// refusals are what a disk says that takes nothing.
var refusals = map[string]syscall.Errno{"full": unix.ENOSPC, "read-only": unix.EROFS}

// refusesEach is how many disk calls are between two from which on they are refused; see cutsEach.
const refusesEach = 9 * fewer

// From whichever call on that changes the root dir the disk refuses all of them, a version runs that
// nobody asked to end; and once the disk is well again all comes out as if nothing had been.
func TestEveryDiskCallMayBeTheFirstThatIsRefused(t *testing.T) {
	t.Parallel()
	watch, ok := runWatched(t)
	if !ok {
		return
	}
	all := 0
	for _, s := range diskScenarios {
		for name, refusal := range refusals {
			if s.first == nil {
				continue
			}
			t.Run(s.name+", and the disk is "+name, func(t *testing.T) {
				nth, by := 1, 1
				if os.Getenv("MONOPOD_CUTS") != "all" {
					nth, by = 1+seedOfCommit()%refusesEach, refusesEach
				}
				for met := true; met && !t.Failed(); nth += by {
					met = s.refuse(t, watch, nth, refusal)
					all++
				}
			})
		}
	}
	t.Logf("%d walks", all)
}

// refuse goes through the scenario with a disk that refuses the nth call and all after it for some
// minutes. met is whether there was such a call.
func (s *diskScenario) refuse(t *testing.T, watch diskWatch, nth int, refusal syscall.Errno) (met bool) {
	dir := quickDir(t)
	synctest.Test(t, func(t *testing.T) {
		w := &diskWalk{rig: &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(dir, "root"), log: &lines{}}, of: s, watch: watch, images: map[string]string{}}
		w.AddImage("img:1", "img:2", "img:bad")
		w.offline("img:none")
		w.Program("img:bad", critest.Exits(1))
		w.start()
		defer func() { w.stop() }()
		w.begin()
		noErr(t, watch.begin(watchOrder{Dir: w.dir, Nth: nth, Refuses: refusal}))
		again := slices.IndexFunc(s.steps, func(do ask) bool {
			err := do(w)
			w.after(8 * time.Second)
			return err != nil
		})
		w.after(10 * time.Minute)
		runs := w.Running()
		calls, err := watch.end()
		noErr(t, err)
		met = len(calls) >= nth
		if len(runs) == 0 && s.runs != "" && !s.rests {
			t.Error("nothing runs while the disk takes nothing")
		}
		if again >= 0 {
			for _, do := range s.steps[again:] {
				noErr(t, do(w))
				w.after(8 * time.Second)
			}
		}
		w.after(10 * time.Minute)
		w.stop() // and what was not written to its end goes
		w.start()
		w.want(w.docs...)
		w.after(time.Minute)
		for _, started := range glob(w.dir, ".etc-hosts.new") { // it goes with the pod, or as the file is written again
			noErr(t, os.Remove(started))
		}
		w.check()
		w.docs = nil
		w.want()
		w.after(3 * time.Minute)
		w.leavesNothing()
		w.tidy(0)
		if t.Failed() {
			at := "nothing"
			if met {
				at = calls[nth-1]
			}
			t.Logf("%s, refused from call %d on, %s; the agent's log:\n%s", s.name, nth, at, w.log)
		}
	})
	return met
}
