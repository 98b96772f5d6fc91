package pinning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/cpus"
)

// machine describes CPUs without siblings.
func machine(t *testing.T, count int) string {
	t.Helper()
	dir := t.TempDir()
	for id := range count {
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
	return dir
}

// settings reserve one CPU of four.
func settings(t *testing.T) Settings {
	reserved := resource.MustParse("500m")
	return Settings{Policy: cpus.Settings{Policy: cpus.Static, Reserved: &reserved}, Every: time.Second,
		System: machine(t, 4), Path: filepath.Join(t.TempDir(), "cpu_manager_state")}
}

// pod is a Guaranteed pod with one container, c.
func pod(uid, cpu string) *v1.Pod {
	p := &v1.Pod{}
	p.UID = types.UID(uid)
	amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Mi")}
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: amounts, Limits: amounts}}}
	return p
}

// running is a runtime with containers that run for as long as they are among all.
type running struct {
	all    []cpus.Running
	pinned []string
	fails  error
	down   error
}

func (r *running) Running(context.Context) ([]cpus.Running, error) { return r.all, r.down }

func (r *running) Pin(_ context.Context, id, list string) error {
	r.pinned = append(r.pinned, id+" "+list)
	return r.fails
}

func newKeeper(t *testing.T, s Settings, r Runtime) (*Keeper, []string) {
	t.Helper()
	var said []string
	k, err := New(s, r, slog.New(slog.DiscardHandler), func(reason, _ string) { said = append(said, reason) })
	if err != nil {
		t.Fatal(err)
	}
	return k, said
}

func TestAPolicyThatIsWrongIsAnError(t *testing.T) {
	none, much := resource.Quantity{}, resource.MustParse("9")
	for _, row := range []struct {
		name  string
		spoil func(*Settings)
		want  string
	}{
		{"nothing is reserved", func(s *Settings) { s.Policy.Reserved = nil }, "unable to determine reserved CPU resources"},
		{"no cpu is reserved", func(s *Settings) { s.Policy.Reserved = &none }, "to be greater than zero"},
		{"more is reserved than there is", func(s *Settings) { s.Policy.Reserved = &much }, "unable to reserve the required amount of CPUs"},
		{"an unknown CPU is reserved", func(s *Settings) { s.Policy.Listed = cpus.NewSet(9) }, "unknown CPU ID: 9"},
		{"options contradict each other", func(s *Settings) {
			s.Policy.Options = map[string]string{"prefer-align-cpus-by-uncorecache": "true", "distribute-cpus-across-numa": "true"}
		}, "can not be used at the same time"},
		{"the machine is not described", func(s *Settings) { s.System = t.TempDir() }, "no CPU is described"},
	} {
		s := settings(t)
		row.spoil(&s)
		k, err := New(s, nil, nil, nil)
		if k != nil || err == nil || !strings.HasPrefix(err.Error(), "cpuManagerPolicy static: ") || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestThePolicyNoneKeepsNothing(t *testing.T) {
	k, err := New(Settings{Policy: cpus.Settings{Policy: cpus.None, Options: map[string]string{"full-pcpus-only": "true"}}}, nil, nil, nil)
	if k != nil || err != nil {
		t.Fatal(k, err)
	}
	k.Keep(nil)
	k.Started("u", "c", "id", "")
	k.Run(t.Context())
	if k.RoomTogether([]*v1.Pod{pod("u", "1")}, nil) != nil || k.Reserve("u", pod("u", "1"), nil) {
		t.Error("it reserves something")
	}
	if k.Room(pod("u", "1"), nil) != nil || k.Take(pod("u", "1"), nil) != nil || k.Free([]string{"u"}) || k.Of("u", "c") != "" {
		t.Error("it does something")
	}
}

// With strict-cpu-reservation no CPU may be left that containers share.
func TestAssignmentsOfAllCPUsHold(t *testing.T) {
	s := settings(t)
	s.Policy.Options = map[string]string{"strict-cpu-reservation": "true"}
	k, _ := newKeeper(t, s, &running{})
	for _, p := range []*v1.Pod{pod("a", "1"), pod("b", "2"), pod("c", "1")} {
		if p.UID == "c" {
			k.Free([]string{"a"})
		}
		if refusal := k.Take(p, nil); refusal != nil {
			t.Fatal(refusal.Message)
		}
	}
	k.save()
	again, said := newKeeper(t, s, &running{})
	for _, uid := range []string{"b", "c"} {
		if was, is := k.Own(uid, "c").String(), again.Own(uid, "c").String(); was == "" || is != was {
			t.Errorf("%s has %q, and had %q", uid, is, was)
		}
	}
	if len(said) > 0 {
		t.Errorf("events %v", said)
	}
}

// What has no CPUs for itself keeps off those of others, also if none is left to share.
func TestWhereNoCPUIsLeftToShare(t *testing.T) {
	s := settings(t)
	s.Policy.Options = map[string]string{"strict-cpu-reservation": "true"}
	r := &running{all: []cpus.Running{{Key: cpus.Key{UID: "shares", Container: "c"}, ID: "id"}}}
	k, _ := newKeeper(t, s, r)
	k.Started("shares", "c", "id", k.Of("shares", "c"))
	if refusal := k.Take(pod("a", "3"), nil); refusal != nil {
		t.Fatal(refusal.Message)
	}
	k.reconcile(t.Context())
	if got := k.Of("shares", "c"); got != "0" || strings.Join(r.pinned, ", ") != "id 0" {
		t.Errorf("on %s; pinned: %v", got, r.pinned)
	}
	k.Free([]string{"a"})
	k.reconcile(t.Context())
	if got := k.Of("shares", "c"); got != "1-3" || strings.Join(r.pinned, ", ") != "id 0, id 1-3" {
		t.Errorf("on %s; pinned: %v", got, r.pinned)
	}
}

func TestWhatIsRecordedDecidesWhetherItHolds(t *testing.T) {
	for _, row := range []struct {
		name, text, of string
		said           int
	}{
		{"nothing", "", "0-3", 0},
		{"an assignment", `{"policyName":"static","defaultCpuSet":"0-1,3","entries":{"u":{"c":"2"}},"checksum":0}`, "2", 0},
		{"a damaged file", `{"policyName":"static","defaultCpuSet":"0-1,3","checksum":7}`, "0-3", 1},
		{"no JSON", `{`, "0-3", 1},
		{"another policy", `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`, "0-3", 1},
		{"a machine with more CPUs", `{"policyName":"static","defaultCpuSet":"0-7","checksum":0}`, "0-3", 1},
		{"a reserved CPU that is a container's", `{"policyName":"static","defaultCpuSet":"1-3","entries":{"u":{"c":"0"}},"checksum":0}`, "0-3", 1},
	} {
		s := settings(t)
		if row.text != "" {
			if err := os.WriteFile(s.Path, []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k, said := newKeeper(t, s, nil)
		if got := k.Of("u", "c"); got != row.of || len(said) != row.said {
			t.Errorf("%s: on %s, said %v", row.name, got, said)
		}
	}
}

func TestAFileThatCannotBeReadDoesNotHold(t *testing.T) {
	s := settings(t)
	if err := os.Mkdir(s.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if k, said := newKeeper(t, s, nil); k.Of("u", "c") != "0-3" || len(said) != 1 {
		t.Errorf("on %s, said %v", k.Of("u", "c"), said)
	}
}

func TestRoomTogether(t *testing.T) {
	k, _ := newKeeper(t, settings(t), nil)
	k.Take(pod("u", "3"), nil)
	for _, row := range []struct {
		name   string
		cpus   []string
		former []string
		has    bool
	}{
		{"both have room after another pod", []string{"2", "1"}, []string{"u"}, true},
		{"the last one has none", []string{"2", "2"}, []string{"u"}, false},
		{"the other pod stays", []string{"1", "1"}, nil, false},
		{"the last one shares", []string{"1", "500m"}, nil, true},
	} {
		var pods []*v1.Pod
		for at, cpu := range row.cpus {
			pods = append(pods, pod(fmt.Sprint("p", at), cpu))
		}
		if refusal := k.RoomTogether(pods, row.former); (refusal == nil) != row.has {
			t.Errorf("%s: %v", row.name, refusal)
		}
		if k.Of("u", "c") != "1-3" || k.Of("p0", "c") != "0" {
			t.Errorf("%s: something is assigned: u is on %s, p0 on %s", row.name, k.Of("u", "c"), k.Of("p0", "c"))
		}
	}
}

func TestWhatIsReservedIsNobodysUntilItIsFreed(t *testing.T) {
	k, _ := newKeeper(t, settings(t), nil)
	k.Take(pod("u", "1"), nil)
	if !k.Reserve("way back", pod("former", "2"), []string{"u"}) || k.Own("way back", "c").String() != "1-2" {
		t.Errorf("%s is reserved, of which u has %s", k.Own("way back", "c"), k.Own("u", "c"))
	}
	if k.Reserve("more", pod("v", "2"), nil) || len(k.Own("more", "c")) > 0 {
		t.Errorf("%s is reserved where there is one", k.Own("more", "c"))
	}
	if r := k.Take(pod("v", "2"), nil); r == nil {
		t.Errorf("v has %s", k.Own("v", "c"))
	}
	if k.Free([]string{"nobody"}) || !k.Free([]string{"way back"}) {
		t.Error("it is not known what is freed")
	}
	if r := k.Take(pod("v", "2"), nil); r != nil || k.Own("v", "c").String() != "2-3" {
		t.Errorf("v has %s, %v", k.Own("v", "c"), r)
	}
	k.Keep(map[string]bool{"u": true})
	if k.Own("u", "c").String() != "1" || len(k.Own("v", "c")) > 0 {
		t.Errorf("u has %s, v %s", k.Own("u", "c"), k.Own("v", "c"))
	}
}

func TestTheFileIsWrittenOnceTheDiskTakesIt(t *testing.T) {
	s := settings(t)
	dir := filepath.Join(t.TempDir(), "later")
	s.Path = filepath.Join(dir, "state")
	var log strings.Builder
	k, _ := newKeeper(t, s, &running{})
	k.log = slog.New(slog.NewTextHandler(&log, nil))
	for range 2 {
		k.save()
		k.reconcile(t.Context()) // which forgets errors of containers
	}
	if n := strings.Count(log.String(), "CPU assignments not written"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	k.save()
	if err := os.Remove(s.Path); err != nil {
		t.Error(err)
	}
	k.save()
	if _, err := os.Stat(s.Path); !os.IsNotExist(err) {
		t.Errorf("it is written without a change: %v", err)
	}
	k.Take(pod("u", "1"), nil)
	k.save()
	if text, err := os.ReadFile(s.Path); err != nil || string(text) != k.table.Text() {
		t.Errorf("written: %s, %v", text, err)
	}
}

// A runtime that gives no answer has not lost its containers.
func TestWhatContainersHaveIsKnownAfterTheRuntimeWasDown(t *testing.T) {
	r := &running{all: []cpus.Running{{Key: cpus.Key{UID: "u", Container: "c"}, ID: "a"}}}
	k, _ := newKeeper(t, settings(t), r)
	k.Started("u", "c", "a", "0-3")
	all := r.all
	for _, down := range []error{nil, errors.New("down"), nil} {
		r.all, r.down = all, down
		if down != nil {
			r.all = nil
		}
		k.reconcile(t.Context())
	}
	if len(r.pinned) > 0 {
		t.Errorf("pinned %s", r.pinned)
	}
}

func TestRoomAssignsNothing(t *testing.T) {
	k, _ := newKeeper(t, settings(t), nil)
	if r := k.Room(pod("u", "3"), nil); r != nil || k.Of("u", "c") != "0-3" {
		t.Errorf("%v, on %s", r, k.Of("u", "c"))
	}
	if r := k.Take(pod("u", "3"), nil); r != nil || k.Of("u", "c") != "1-3" {
		t.Errorf("%v, on %s", r, k.Of("u", "c"))
	}
	if r := k.Take(pod("v", "1"), nil); r == nil || k.Of("v", "c") != "0" {
		t.Errorf("%v, on %s", r, k.Of("v", "c"))
	}
	if r := k.Room(pod("v", "1"), []string{"u"}); r != nil {
		t.Errorf("after u: %v", r)
	}
}

func TestAResizedPodGetsOtherCPUs(t *testing.T) {
	k, _ := newKeeper(t, settings(t), nil)
	for _, row := range []struct{ cpu, want string }{{"1", "1"}, {"2", "1-2"}, {"1", "1"}, {"1500m", "0-3"}} {
		if r := k.Take(pod("u", row.cpu), nil); r != nil || k.Of("u", "c") != row.want {
			t.Errorf("%s: %v, on %s", row.cpu, r, k.Of("u", "c"))
		}
	}
}

func TestAContainerThatAPodHasNoMoreHasNoCPUs(t *testing.T) {
	k, _ := newKeeper(t, settings(t), nil)
	k.Take(pod("u", "3"), nil)
	other := pod("u", "3")
	other.Spec.Containers[0].Name = "d"
	if r := k.Take(other, nil); r != nil || len(k.Own("u", "c")) > 0 || k.Own("u", "d").String() != "1-3" {
		t.Errorf("%v: c has %s, d %s", r, k.Own("u", "c"), k.Own("u", "d"))
	}
}

func TestRunningContainersGetWhatIsTheirsOnce(t *testing.T) {
	s := settings(t)
	synctest.Test(t, func(t *testing.T) {
		r := &running{all: []cpus.Running{{Key: cpus.Key{UID: "s", Container: "c"}, ID: "shared"}, {Key: cpus.Key{UID: "u", Container: "c"}, ID: "own"}}}
		k, _ := newKeeper(t, s, r)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go k.Run(ctx)
		said := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := strings.Join(r.pinned, ", "); got != want {
				t.Errorf("pinned %s, not %s", got, want)
			}
			r.pinned = nil
		}
		said("shared 0-3, own 0-3") // after a start it is not known what they have
		time.Sleep(time.Minute)
		said("")
		k.Take(pod("u", "2"), nil)
		said("shared 0,3, own 1-2")
		k.Started("u", "c", "own", "1-2")
		said("")
		k.Free([]string{"u"})
		said("shared 0-3, own 0-3")
		if text, err := os.ReadFile(s.Path); err != nil || !strings.Contains(string(text), `"defaultCpuSet":"0-3"`) {
			t.Errorf("written: %s, %v", text, err)
		}
		k.Started("s", "c", "shared", "0-1") // made before the last change
		said("shared 0-3")
	})
}

func TestAnErrorIsForgottenWithItsContainer(t *testing.T) {
	var log strings.Builder
	r := &running{all: []cpus.Running{{Key: cpus.Key{UID: "u", Container: "c"}, ID: "a"}}, fails: errors.New("no")}
	k, _ := newKeeper(t, settings(t), r)
	k.log = slog.New(slog.NewTextHandler(&log, nil))
	said := func() int {
		k.reconcile(t.Context())
		return strings.Count(log.String(), "CPUs of a container not changed")
	}
	for range 2 {
		if said() != 1 {
			t.Errorf("it is said as %s", log.String())
		}
	}
	all := r.all
	r.all = nil
	said()
	r.all = all
	if said() != 2 {
		t.Errorf("it is remembered: %s", log.String())
	}
}

func TestWhatIsAssignedIsToldAndCounted(t *testing.T) {
	k, _ := newKeeper(t, settings(t), nil)
	assigned := 0
	k.Assigned = func(containers int) { assigned += containers }
	if shared, own := k.Pools(); shared != 3 || own != 0 || k.Allocatable().String() != "1-3" {
		t.Errorf("at first %d are shared, %d not, of %s", shared, own, k.Allocatable())
	}
	k.Take(pod("u", "2"), nil)
	k.Take(pod("s", "500m"), nil)
	k.Take(pod("v", "2"), nil) // there is one
	if shared, own := k.Pools(); shared != 1 || own != 2 || assigned != 1 || k.Allocatable().String() != "1-3" {
		t.Errorf("then %d are shared, %d not, of %s, %d assigned", shared, own, k.Allocatable(), assigned)
	}
	if own, shared := k.Own("u", "c"), k.Own("s", "c"); own.String() != "1-2" || len(shared) > 0 {
		t.Errorf("u has %s, s %s", own, shared)
	}
	var none *Keeper
	if shared, own := none.Pools(); shared+own+len(none.Allocatable())+len(none.Own("u", "c")) > 0 {
		t.Error("without a policy there is something")
	}
}
