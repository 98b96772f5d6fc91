//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"monopod/agent/e2e/rig"
)

// momentsOfCI is how often the agent is killed where MONOPOD_E2E_MOMENTS does not say.
const momentsOfCI = 10

// TestRandomMoments has a containerd of its own, as TestKills has, and for the same reason.
func TestRandomMoments(t *testing.T) {
	binary := monopod(t)
	times := momentsOfCI
	if asked := os.Getenv("MONOPOD_E2E_MOMENTS"); asked != "" {
		n, err := strconv.Atoi(asked)
		check(t, err)
		times = n
	}
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			r := openLeaky(t, version)
			survivesRandomMoments(newWorld(t, r, binary, "moments"), times)
		})
	}
}

// moments are the pods of a world whose agent is killed at random moments, each named by what
// becomes of it.
type moments struct {
	*world
	host    string
	count   int                      // versions so far
	isBad   bool                     // the version on trial that was offered last
	program map[string]string        // by pod: what is to run; "": nothing
	was     map[string]rig.Container // by pod: what ran when all was well
}

// deeds are what is done to the pod of that name before the agent is killed. What they return is
// done again once an agent runs, as it is not known how far it came; nil: nothing is.
var deeds = map[string]func(*moments) (again func()){
	"swapped":    (*moments).swap,
	"changed":    (*moments).changeInPlace,
	"labelled":   (*moments).label,
	"comes":      (*moments).comeOrGo,
	"stopped":    (*moments).stopOrStart,
	"rolledback": (*moments).tryBad,
}

// survivesRandomMoments does something to one or two pods, kills the agent up to 0.8 s later, and
// starts another: what is to run runs then, once, what was not touched was not restarted, and
// nothing else is left.
func survivesRandomMoments(w *world, times int) {
	w.agent.Settings += "updateStable: 1s\n"
	m := &moments{world: w, host: filepath.Join(w.agent.Dir, "host"), program: map[string]string{}, was: map[string]rig.Container{}}
	check(w.T, os.Mkdir(m.host, 0o755))
	names := slices.Sorted(maps.Keys(deeds))
	for _, pod := range append(names, "untouched") {
		m.writeNext(pod, "", "")
	}
	w.start()
	m.settle()
	m.isBad = true // as if a bad one had been tried: then a good one is
	m.tryBad()()
	delete(m.was, "rolledback")
	m.settle()
	for k := range times {
		rand.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
		touched := names[:1+rand.IntN(2)]
		after := time.Duration(rand.IntN(800)) * time.Millisecond
		w.Logf("moment %d: %v, killed %v later", k+1, touched, after)
		var again []func()
		for _, pod := range touched {
			again = append(again, deeds[pod](m))
			delete(m.was, pod)
		}
		time.Sleep(after) // whatever has happened by then must come out well
		w.kill()
		w.start()
		for _, do := range again {
			if do != nil {
				do()
			}
		}
		m.settle()
	}
	// See survivesKillsWhileStarting.
	check(w.T, w.rig.Runtime.Restart(w.Context()))
	w.until("/healthz recovers", func() error { return w.agent.Healthy(w.Context()) })
}

// writeNext writes the next version of a pod. metadata and spec are YAML of it that others do not
// have.
func (m *moments) writeNext(pod, metadata, spec string) {
	m.Helper()
	m.count++
	m.program[pod] = fmt.Sprintf("%s.%d", pod, m.count)
	m.writeWith(pod, m.program[pod], metadata, spec)
}

func (m *moments) writeWith(pod, program, metadata, spec string) {
	m.Helper()
	text := m.manifest(pod, spec+fmt.Sprintf(counted, program, m.host))
	text = strings.Replace(text, "metadata:\n", "metadata:\n"+metadata, 1)
	m.writeFile(pod+".yaml", strings.Replace(text, "terminationGracePeriodSeconds: 5", "terminationGracePeriodSeconds: 1", 1))
}

// swap has the whole pod replaced.
func (m *moments) swap() func() {
	m.writeNext("swapped", "", fmt.Sprintf("  hostname: v%d\n", m.count+1))
	return nil
}

func (m *moments) changeInPlace() func() {
	m.writeNext("changed", "", "")
	return nil
}

// label changes what restarts nothing: what runs stays.
func (m *moments) label() func() {
	was, there := m.was["labelled"]
	m.writeWith("labelled", m.program["labelled"], fmt.Sprintf("  labels: {moment: m%d}\n", rand.IntN(1000)), "")
	return func() {
		if there {
			m.was["labelled"] = was
		}
	}
}

func (m *moments) comeOrGo() func() {
	if m.program["comes"] == "" {
		m.writeNext("comes", "", "")
		return nil
	}
	m.program["comes"] = ""
	m.remove("comes")
	return nil
}

// stopOrStart asks for it as a user, whose command fails if the agent dies: then it is asked for
// once more.
func (m *moments) stopOrStart() func() {
	verb, program := "start", m.last("stopped")
	if m.program["stopped"] != "" {
		verb, program = "stop", ""
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = m.agent.Says(m.Context(), verb, "stopped", "-n", m.ns)
	}()
	return func() {
		<-asked
		m.until("the pod takes "+verb, func() error {
			out, err := m.agent.Says(m.Context(), verb, "stopped", "-n", m.ns)
			if err != nil && !strings.Contains(out, "already") && !strings.Contains(out, "not stopped") {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		m.program["stopped"] = program
	}
}

// last returns the program of the version of a pod that was written last.
func (m *moments) last(pod string) string {
	b, err := os.ReadFile(filepath.Join(m.agent.Manifests, pod+".yaml"))
	check(m.T, err)
	found := regexp.MustCompile(`/host/(` + pod + `\.\d+);`).FindStringSubmatch(string(b))
	if found == nil {
		m.Fatalf("the manifest of %s names no program:\n%s", pod, b)
	}
	return found[1]
}

// tryBad offers a version that fails at once, which gives way, or, after one that did, a good one.
func (m *moments) tryBad() func() {
	const pod, onTrial = "rolledback", "  annotations: {monopod.update-health: 20s}\n"
	m.isBad = !m.isBad
	if !m.isBad {
		m.writeNext(pod, onTrial, "")
		return m.worked
	}
	m.count++
	bad := fmt.Sprintf("%s.%d", pod, m.count)
	text := strings.Replace(m.manifest(pod, fmt.Sprintf(counted, bad, m.host)), "sleep 3600 & wait", "exit 3", 1)
	m.writeFile(pod+".yaml", strings.Replace(text, "metadata:\n", "metadata:\n"+onTrial, 1))
	return func() { m.ps(pod, "update rolled back: ") }
}

// worked waits until the version on trial is one to go back to.
func (m *moments) worked() {
	m.until("the trial is over", func() error {
		out, err := m.agent.Says(m.Context(), "wait", filepath.Join(m.agent.Manifests, "rolledback.yaml"), "--for", "updated", "--timeout", "1m")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// settle waits until all is as it is to be, and records what runs.
func (m *moments) settle() {
	m.Helper()
	m.untilFreed("all is as it is to be", func() error { return cmp.Or(m.wrongPrograms(), m.wrongSandboxes()) })
	for pod, program := range m.program {
		if program == "" {
			continue
		}
		now := m.running(pod)[pod]
		if was, known := m.was[pod]; known && was.ID != now.ID {
			m.Fatalf("%s was restarted: %+v runs, and %+v ran", pod, now, was)
		}
		m.was[pod] = now
	}
}

// wrongPrograms compares what runs on this machine with what is to. Two versions of one pod at a
// time fail the test, whenever they are seen. One version may run twice for a moment: a containerd
// says that a container whose start it broke off has ended, before it has.
func (m *moments) wrongPrograms() error {
	all := m.programs()
	for pod, some := range all {
		if len(some) > 1 {
			again := m.programs()[pod] // the first look took some time
			if len(slices.Compact(slices.Clone(again))) > 1 && slices.Equal(again, some) {
				m.Fatalf("programs %v of %s run at a time", some, pod)
			}
		}
	}
	for pod, program := range m.program {
		if got := strings.Join(all[pod], " "); got != program {
			return fmt.Errorf("of %s runs %q, want %q", pod, got, program)
		}
	}
	return nil
}

var programOf = regexp.MustCompile(`^sh\x00-c\x00.*>> /host/(([a-z]+)\.\d+);`)

// programs returns the programs of these pods that run, by pod.
func (m *moments) programs() map[string][]string {
	all := map[string][]string{}
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range found {
		b, _ := os.ReadFile(path)
		if is := programOf.FindStringSubmatch(string(b)); is != nil {
			all[is[2]] = append(all[is[2]], is[1])
		}
	}
	for _, some := range all {
		slices.Sort(some)
	}
	return all
}

func (m *moments) wrongSandboxes() error {
	for pod, program := range m.program {
		ready := 0
		for _, s := range m.sandboxes(pod) {
			if s.Ready {
				ready++
			}
		}
		if want := min(len(program), 1); ready != want {
			return fmt.Errorf("%s has %d sandboxes that are ready, want %d", pod, ready, want)
		}
	}
	return nil
}
