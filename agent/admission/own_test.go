package admission

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/cpus"
	"monopod/agent/devices"
	"monopod/agent/node"
	"monopod/agent/pinning"
	"monopod/manifests"
)

// onSixCPUs returns a table of a machine of which containers can have the CPUs 1 to 5 for
// themselves. Of all else there is enough.
func onSixCPUs(t *testing.T) *tabled {
	s := tableOn(t, plenty())
	s.Assign(keeper(t), nil, nil, nil)
	return s
}

func plenty() *node.Facts {
	f := someNode()
	f.Capacity = list("cpu", "100", "memory", "1000", "pods", "100")
	f.Allocatable = f.Capacity
	return f
}

func keeper(t *testing.T) *pinning.Keeper {
	t.Helper()
	dir := t.TempDir()
	for id := range 6 {
		at := filepath.Join(dir, fmt.Sprintf("cpu/cpu%d/topology", id))
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"physical_package_id": "0", "core_id": fmt.Sprint(id)} {
			if err := os.WriteFile(filepath.Join(at, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	one := resource.MustParse("1")
	k, err := pinning.New(pinning.Settings{Policy: cpus.Settings{Policy: cpus.Static, Reserved: &one}, Every: time.Hour, System: dir, Path: filepath.Join(dir, "state")},
		nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func own(count int, extra ...string) []string {
	return append(extra, fmt.Sprintf("c: resources: {requests: {cpu: %[1]d, memory: 1}, limits: {cpu: %[1]d, memory: 1}}", count))
}

// runsOn checks the CPUs that a version has for itself.
func (s *tabled) runsOn(p *manifests.Pod, want string) {
	s.Helper()
	if got := s.cpus.Own(string(p.UID), "c").String(); got != want {
		s.Errorf("%s has %q, not %q", p.UID, got, want)
	}
}

// sharesOf checks how many CPUs containers share, besides the reserved one.
func (s *tabled) shares(want int) {
	s.Helper()
	if got, _ := s.cpus.Pools(); got != want {
		s.Errorf("%d are shared, not %d", got, want)
	}
}

// While a version is on trial, no other pod gets what the former one had, and that one gets it back.
func TestCPUsAreKeptForAVersionThatMayBeRestored(t *testing.T) {
	for name, next := range map[string]func(s *tabled, former *manifests.Pod) *manifests.Pod{
		"another uid":  func(s *tabled, former *manifests.Pod) *manifests.Pod { return s.version(asked(t, "a", own(1)...)) },
		"the same uid": func(s *tabled, former *manifests.Pod) *manifests.Pod { return s.edited(former, own(1)...) },
	} {
		for _, ends := range []string{"rolled back", "healthy", "stopped", "removed"} {
			t.Run(name+", "+ends, func(t *testing.T) {
				s := onSixCPUs(t)
				s.T = t
				former := s.admit(s.version(asked(t, "a", own(3)...)))
				s.runsOn(former, "1-3")
				s.Reserve(former)
				tried := s.admit(next(s, former))
				s.Update(tried.Key(), true, false)
				s.runsOn(tried, "1")
				s.shares(2)
				other := s.admit(s.version(asked(t, "b", own(2)...)))
				s.runsOn(other, "4-5")
				if r := s.asks(asked(t, "c", own(1)...)); r == nil || !r.LacksCPUs() {
					t.Errorf("another pod: %v", r)
				}
				s.TakeFreed()
				switch ends {
				case "rolled back":
					s.admit(former)
					s.Update(former.Key(), true, false)
					s.Unreserve(former.Key())
					s.runsOn(former, "1-3")
					s.shares(0)
				case "healthy":
					s.Unreserve(former.Key())
					s.runsOn(tried, "1")
					s.shares(2)
				case "stopped":
					s.Free(former.Key())
					s.shares(2)
					s.Update(former.Key(), true, false)
					s.shares(3)
				case "removed":
					s.remove(former.Key())
					s.shares(3)
				}
				if !s.TakeFreed() && ends != "rolled back" {
					t.Error("nothing is freed")
				}
			})
		}
	}
}

func TestALargerVersionOnTrialTakesNoMoreThanItRequests(t *testing.T) {
	s := onSixCPUs(t)
	former := s.admit(s.version(asked(t, "a", own(2)...)))
	s.Reserve(former)
	tried := s.admit(s.version(asked(t, "a", own(3)...)))
	s.Update(tried.Key(), true, false)
	s.runsOn(tried, "1-3")
	s.shares(2)
}

// An agent that starts while a version is on trial has no checkpoint of the former one.
func TestCPUsAreKeptAfterARestart(t *testing.T) {
	s := onSixCPUs(t)
	former := s.admit(s.version(asked(t, "a", own(3)...)))
	s.Reserve(former)
	tried := s.admit(s.version(asked(t, "a", own(1)...)))
	s.Update(tried.Key(), true, false)
	left := []*checkpoint.Checkpoint{{File: tried.File, Digest: tried.Digest, Pod: tried.Pod}}
	for name, k := range map[string]*pinning.Keeper{"the record holds": s.cpus, "the record is lost": keeper(t)} {
		next := &tabled{T: t, refused: map[manifests.Key]Waiter{}, Table: NewTable(*plenty(), left, func(*v1.Pod, error) {})}
		next.Reserve(former)
		next.Assign(k, nil, left, func(p *manifests.Pod, r *Rejection) { t.Errorf("%s: %s is told %v", name, p.Name, r) })
		next.runsOn(tried, "1")
		next.shares(2)
		next.Unreserve(former.Key())
		next.shares(4)
	}
}

// What a version has for itself counts even if the totals of all requests stay the same.
func TestCPUsThatAreSharedAgainAreFreed(t *testing.T) {
	s := onSixCPUs(t)
	s.admit(s.version(asked(t, "a", own(5)...)))
	next := s.admit(s.version(asked(t, "a", requests("cpu: 5"))))
	if r := s.asks(asked(t, "b", own(1)...)); r == nil {
		t.Error("the former version still runs")
	}
	s.TakeFreed()
	s.Update(next.Key(), true, false)
	s.shares(5)
	if !s.TakeFreed() {
		t.Error("nothing is freed")
	}
}

// Of two pods one wants the port of the other, which wants its CPUs.
func TestPodsThatExchangeCPUsForAPortSwap(t *testing.T) {
	s := onSixCPUs(t)
	s.admit(s.version(asked(t, "a", own(4)...)))
	s.admit(s.version(asked(t, "b", own(1, port(80))...)))
	s.admit(s.version(asked(t, "b", own(4)...)))
	if got := s.Swaps(s.waiting()); len(got) != 0 {
		t.Fatalf("one alone moves: %v", got)
	}
	s.admit(s.version(asked(t, "a", own(2, port(80))...)))
	if got := s.Swaps(s.waiting()); len(got) != 0 {
		t.Fatalf("they move, and do not fit: %v", got)
	}
	s.admit(s.version(asked(t, "a", own(1, port(80))...)))
	got := s.Swaps(s.waiting())
	if len(got) != 2 {
		t.Fatalf("move: %v, and wait: %v", got, s.waiting())
	}
	for _, key := range got {
		s.Free(key)
	}
	for _, key := range got {
		s.Update(key, true, false)
	}
	s.retry()
	if len(s.refused) > 0 {
		t.Errorf("after that wait: %v", s.waiting())
	}
}

// onTTYs returns a table of a machine with two devices, of which there is a resource.
func onTTYs(t *testing.T) *tabled {
	s := tableOn(t, plenty())
	s.Assign(nil, ttys(t), nil, nil)
	return s
}

func ttys(t *testing.T) *devices.Keeper {
	return devices.New(devices.Settings{Resources: map[string]devices.Resource{"example.com/tty": {Paths: []string{"/dev/null", "/dev/zero"}, Permissions: "rw", Count: 1}},
		Path: filepath.Join(t.TempDir(), "devices.json"), Unwatched: true}, slog.New(slog.DiscardHandler), func(string, string) {})
}

func (s *tabled) hasTTYs(p *manifests.Pod, want string) {
	s.Helper()
	if got := fmt.Sprint(s.devices.Own(p.Key().String(), string(p.UID), "c")["example.com/tty"]); got != want {
		s.Errorf("%s has %s, not %s", p.UID, got, want)
	}
}

func tty(count int) string { return requests(fmt.Sprint("example.com/tty: ", count)) }

// A version may have the devices of the former one, which are freed for others once that is gone.
func TestDevicesOfVersions(t *testing.T) {
	s := onTTYs(t)
	s.T = t
	former := s.admit(s.version(asked(t, "a", tty(2))))
	s.hasTTYs(former, "[/dev/null /dev/zero]")
	if r := s.asks(asked(t, "b", tty(1))); r == nil || r.Reason != "OutOfexample.com/tty" {
		t.Errorf("another pod: %v", r)
	}
	if r := s.Fits(s.version(asked(t, "b", tty(1)))); r == nil {
		t.Error("another pod would fit")
	}
	next := s.admit(s.version(asked(t, "a", tty(1))))
	s.hasTTYs(next, "[/dev/null]")
	if r := s.asks(asked(t, "b", tty(1))); r == nil {
		t.Error("the former version may still run")
	}
	s.TakeFreed()
	s.Update(next.Key(), true, false)
	if !s.TakeFreed() {
		t.Error("nothing is freed")
	}
	other := s.admit(s.version(asked(t, "b", tty(1))))
	s.hasTTYs(other, "[/dev/zero]")
	s.remove(next.Key())
	if !s.TakeFreed() || s.asks(asked(t, "d", tty(1))) != nil {
		t.Error("nothing is freed by the removal")
	}
	s.Update(other.Key(), true, true)
	if !s.TakeFreed() || s.asks(asked(t, "d", tty(2))) != nil {
		t.Error("nothing is freed by the end")
	}
	s.TakeFreed()
	s.DevicesChanged()
	if !s.TakeFreed() {
		t.Error("no pod is decided on again")
	}
}

// While a version is on trial, no other pod gets what the former one had.
func TestDevicesAreKeptForAVersionThatMayBeRestored(t *testing.T) {
	s := onTTYs(t)
	s.T = t
	former := s.admit(s.version(asked(t, "a", tty(2))))
	s.Reserve(former)
	tried := s.admit(s.version(asked(t, "a", tty(1))))
	s.Update(tried.Key(), true, false)
	if r := s.asks(asked(t, "b", tty(1))); r == nil {
		t.Error("another pod gets what is kept")
	}
	s.admit(former)
	s.Update(former.Key(), true, false)
	s.Unreserve(former.Key())
	s.hasTTYs(former, "[/dev/null /dev/zero]")
	s.hasTTYs(tried, "[]")
	s.Free(former.Key())
	s.Update(former.Key(), true, false)
	if r := s.asks(asked(t, "b", tty(2))); r != nil {
		t.Errorf("a stopped pod has devices: %v", r)
	}
}

func TestPodsThatExchangeDevicesSwap(t *testing.T) {
	s := onTTYs(t)
	s.T = t
	s.admit(s.version(asked(t, "a", tty(2))))
	s.admit(s.version(asked(t, "b", port(80))))
	s.admit(s.version(asked(t, "a", port(80))))
	s.admit(s.version(asked(t, "b", tty(2))))
	if got := s.Swaps(s.waiting()); len(got) != 2 {
		t.Errorf("move: %v", got)
	}
	s.counted()
}

// Those that previous agents accepted have devices first, in the order of arrival.
func TestDevicesOfFormerAgents(t *testing.T) {
	left := func(name, uid string, count int) *checkpoint.Checkpoint {
		p := asked(t, name, tty(count))
		p.UID = types.UID(uid)
		return &checkpoint.Checkpoint{Digest: uid, Pod: p}
	}
	all := []*checkpoint.Checkpoint{left("a", "1", 1), left("b", "2", 2), left("d", "3", 1)}
	s := &tabled{T: t, refused: map[manifests.Key]Waiter{}, Table: NewTable(*plenty(), all, nil)}
	var told []string
	s.Assign(nil, ttys(t), all, func(p *manifests.Pod, r *Rejection) { told = append(told, p.Name) })
	if fmt.Sprint(told) != "[b]" {
		t.Errorf("told of %s", told)
	}
	for name, want := range map[string]string{"a": "[/dev/null]", "b": "[]", "d": "[/dev/zero]"} {
		s.hasTTYs(s.Admitted(manifests.Key{Namespace: "default", Name: name}), want)
	}
}

// What a device costs must not matter where there are none.
func TestResourcesThatAreNoDevices(t *testing.T) {
	s := onTTYs(t)
	for _, row := range []struct {
		resource string
		refused  bool
	}{{"example.com/gpu", true}, {"podman.io/device=/dev/fuse", false}, {"example.com/gpu=all", false}} {
		if r := s.asks(asked(t, "a", requests("'"+row.resource+"': 1"))); (r != nil) != row.refused {
			t.Errorf("%s: %v", row.resource, r)
		}
	}
}
