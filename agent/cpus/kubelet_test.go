package cpus

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/podspec"
)

// recording is what a kubelet did on machines of all shapes.
type recording struct {
	Machines map[string]struct {
		Sockets int
		CPUs    [][5]int // number, core, socket, NUMA node, uncore cache
	}
	Cases []recordedCase
}

type recordedCase struct {
	Name, Note, Machine string
	Config              recordedConfig
	Steps               []recordedStep
}

type recordedConfig struct {
	Policy   string             `json:"cpuManagerPolicy"`
	Options  map[string]string  `json:"cpuManagerPolicyOptions"`
	Reserved *resource.Quantity `json:"reservedCpu"`
	Listed   string             `json:"reservedSystemCPUs"`
	Gates    []string
	Topology string
}

type recordedStep struct {
	Op, UID, Container, Machine, Content string
	Config                               *recordedConfig
	Pod                                  []string // kind, name, request or request/limit
	PodLevel                             bool

	// The outcome.
	Error, Reason, Message, QoS string
	Reserved, Allocatable       string
	Admit                       bool
	Containers                  map[string]string
	Updates                     [][2]string
	State                       string // "": as before
}

// What is not compared, and why. Of the recorded machines and settings all others are.
var (
	leftOut = map[string]string{
		"cpu/socket-align":                "align-by-socket chooses among the hints of a topology manager, and the settings refuse both",
		"cpu/socket-align-single":         "the error is about a policy of the topology manager",
		"cpu/socket-align-more-sockets":   "the error is about align-by-socket, which the settings refuse",
		"cpu/pod-level-gate-on-pod-scope": "a topology manager assigns CPUs to pods as a whole, with an alpha feature gate",
	}
	// notFollowed are steps after which the comparison continues with what the kubelet has.
	notFollowed = map[string][]int{
		"cpu/numa-spread-8n-4of8":               {2}, // the kubelet scores other NUMA nodes than those that it takes
		"cpu/pod-level-gate-on-container-scope": {1}, // with an alpha feature gate pods with resources of their own count, too
		"cpu/hole-one-thread":                   {3}, // here the kubelet gives a CPU to two pods, as in the cases below
		"cpu/hole-asym":                         {4},
		"cpu/hole-full-pcpus":                   {3},
		"cpu/walk-12-2s-4n-16c-26-asym":         {4, 6},
	}
)

// podLevelGate is an alpha feature gate with which a kubelet's file has a field more, empty in what is
// compared. Its checksum covers that.
const podLevelGate = "PodLevelResourceManagers"

func readRecording(t *testing.T) *recording {
	t.Helper()
	b, err := os.ReadFile("testdata/kubelet.json")
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{}
	if err := json.Unmarshal(b, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *recording) machine(name string) *Machine {
	var all []CPU
	for _, c := range r.Machines[name].CPUs {
		all = append(all, CPU{ID: c[0], Core: c[1], Socket: c[2], NUMA: c[3], Uncore: c[4]})
	}
	return NewMachine(all, r.Machines[name].Sockets)
}

// Every recorded step ends here as in a kubelet: who is admitted, which CPUs containers get, what
// is updated, and the state file byte for byte.
func TestAsAKubelet(t *testing.T) {
	r := readRecording(t)
	equal := 0
	for _, c := range r.Cases {
		if leftOut[c.Name] != "" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			k := newRerun(t, r, c)
			for i, s := range c.Steps {
				if slices.Contains(notFollowed[c.Name], i) {
					k.takeOver(s)
					continue
				}
				k.step(i, s)
			}
		})
		equal++
	}
	if equal != 91 || len(r.Cases) != 95 {
		t.Errorf("%d of %d cases compared", equal, len(r.Cases))
	}
}

// Where a CPU of its own would be another pod's, too, a kubelet is not followed.
func TestWhereAKubeletGivesACPUTwice(t *testing.T) {
	r := readRecording(t)
	for _, c := range r.Cases {
		if !strings.Contains(c.Name, "hole") && !strings.Contains(c.Name, "asym") {
			continue
		}
		for at, step := range notFollowed[c.Name] {
			s := c.Steps[step]
			if own, others := entries(t, s.State, s.UID); len(own.And(others)) == 0 {
				t.Errorf("%s, step %d: the kubelet gives %s, of which no other pod has any", c.Name, step, own)
			}
			if at > 0 { // what pods have before this step is the kubelet's already
				continue
			}
			if own, others := entries(t, admitted(t, r, c, step).Text(), s.UID); len(own) == 0 || len(own.And(others)) > 0 {
				t.Errorf("%s, step %d: %s is given, and others have %s", c.Name, step, own, others)
			}
		}
	}
}

// admitted returns the table after a step that admits a pod.
func admitted(t *testing.T, r *recording, c recordedCase, step int) *Table {
	t.Helper()
	k := newRerun(t, r, c)
	for i, s := range c.Steps[:step] {
		k.step(i, s)
	}
	k.admit(c.Steps[step], func(string, string, string) {})
	return k.table
}

// entries returns which CPUs a pod has by a file, and which all other pods have.
func entries(t *testing.T, text, pod string) (own, others Set) {
	t.Helper()
	var f file
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	for uid, all := range f.Entries {
		for _, text := range all {
			set, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if uid == pod {
				own = own.Or(set)
			} else {
				others = others.Or(set)
			}
		}
	}
	return own, others
}

// Where a kubelet takes other NUMA nodes than it scored, these have as many CPUs to give as those that
// are taken here, and come later.
func TestWhereAKubeletTakesOtherNodes(t *testing.T) {
	const name = "cpu/numa-spread-8n-4of8"
	r := readRecording(t)
	c := r.Cases[slices.IndexFunc(r.Cases, func(c recordedCase) bool { return c.Name == name })]
	step, m := notFollowed[name][0], r.machine(c.Machine)
	s := c.Steps[step]
	ours, _ := entries(t, admitted(t, r, c, step).Text(), s.UID)
	theirs, _ := entries(t, s.State, s.UID)
	if got, want := perNode(m, ours), "2:4 3:4 4:3 5:3"; got != want {
		t.Errorf("taken here: %s, want %s", got, want)
	}
	if got, want := perNode(m, theirs), "2:4 3:4 4:3 7:3"; got != want {
		t.Errorf("taken by the kubelet: %s, want %s", got, want)
	}
}

// perNode returns how many CPUs of each NUMA node are in the set.
func perNode(m *Machine, s Set) string {
	var all []string
	for _, id := range m.units(numa) {
		if n := len(m.in(numa, id).And(s)); n > 0 {
			all = append(all, fmt.Sprint(id, ":", n))
		}
	}
	return strings.Join(all, " ")
}

// rerun is one recorded case done again.
type rerun struct {
	t       *testing.T
	r       *recording
	machine string
	config  recordedConfig
	dir     string
	table   *Table
	ready   bool
	active  []*v1.Pod
	runs    map[Key]string // the ids of containers that run
	made    map[Key]int
	sent    map[Key]string
	state   string
	written string // the last text of the table
}

func newRerun(t *testing.T, r *recording, c recordedCase) *rerun {
	return &rerun{t: t, r: r, machine: c.Machine, config: c.Config, dir: t.TempDir(), runs: map[Key]string{}, made: map[Key]int{}}
}

func (k *rerun) path() string { return filepath.Join(k.dir, "cpu_manager_state") }

func (k *rerun) step(i int, s recordedStep) {
	k.t.Helper()
	check := func(what, got, want string) {
		k.t.Helper()
		if got != want {
			k.t.Errorf("step %d, %s: %s is %q, not %q", i, s.Op, what, got, want)
		}
	}
	switch s.Op {
	case "write":
		os.WriteFile(k.path(), []byte(s.Content), 0o600)
		return
	case "start", "restart":
		if s.Config != nil {
			k.config = *s.Config
		}
		if s.Machine != "" {
			k.machine = s.Machine
		}
		p, err := k.start(s.Op == "start")
		text := ""
		if err != nil {
			text = err.Error()
		}
		want, _, _ := strings.Cut(strings.TrimPrefix(s.Error, "could not restore state from checkpoint: "), ", please drain this node")
		check("error", text, want)
		if err != nil {
			return
		}
		check("reserved", p.Reserved().String(), s.Reserved)
		if s.Op == "start" && p.IsStatic() {
			check("allocatable", p.Allocatable().String(), s.Allocatable)
		}
	case "ready":
		k.ready = true
	case "admit":
		k.admit(s, check)
	case "run":
		key := Key{s.UID, s.Container}
		k.made[key]++
		k.runs[key] = s.UID + "-" + s.Container + "-" + string(rune('0'+k.made[key]))
		set, own := k.table.Of(s.UID, s.Container)
		if own {
			k.sent[key] = set.String()
		}
		for name, want := range s.Containers {
			set, _ := k.table.Of(s.UID, name)
			check("cpuset of "+name, set.String(), want)
		}
	case "exit":
		delete(k.runs, Key{s.UID, s.Container})
	case "reconcile":
		k.clean()
		var got [][2]string
		for _, u := range k.table.Updates(k.running(), func(r Running) string { return k.sent[r.Key] }) {
			got = append(got, [2]string{u.ID, u.CPUs})
			k.sent[u.Key] = u.CPUs
		}
		if !slices.Equal(got, s.Updates) {
			k.t.Errorf("step %d: updates are %v, not %v", i, got, s.Updates)
		}
	case "remove":
		k.deactivate(s.UID)
	default:
		k.t.Fatalf("step %d: unknown %s", i, s.Op)
	}
	if s.State != "" {
		k.state = k.checksummed(s.State)
	}
	if text := k.table.Text(); text != k.written {
		os.WriteFile(k.path(), []byte(text), 0o600)
		k.written = text
	}
	text, _ := os.ReadFile(k.path())
	check("state", string(text), k.state)
}

// checksummed returns the content of a file with the checksum that it has without the feature gate.
func (k *rerun) checksummed(text string) string {
	if !slices.Contains(k.config.Gates, podLevelGate) {
		return text
	}
	var f file
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		k.t.Fatal(err)
	}
	f.Checksum = f.sum()
	b, _ := json.Marshal(f)
	return string(b)
}

// takeOver has the table be what the kubelet has after a step that admits a pod.
func (k *rerun) takeOver(s recordedStep) {
	k.active = append(k.active, podOf(k.t, s))
	k.state = k.checksummed(s.State)
	table, err := k.table.policy.Restore([]byte(k.state))
	if err != nil {
		k.t.Fatal(err)
	}
	k.table, k.written = table, k.state
	if err := os.WriteFile(k.path(), []byte(k.state), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// start starts with what is on disk, as a kubelet that sees no pods yet.
func (k *rerun) start(ready bool) (*Policy, error) {
	listed, err := Parse(k.config.Listed)
	if err != nil {
		k.t.Fatal(err)
	}
	p, err := NewPolicy(k.r.machine(k.machine), Settings{Policy: k.config.Policy, Options: k.config.Options, Listed: listed,
		Reserved: k.config.Reserved, Alpha: slices.Contains(k.config.Gates, "CPUManagerPolicyAlphaOptions")})
	if err != nil {
		return nil, err
	}
	k.ready, k.active, k.sent = ready, nil, map[Key]string{}
	text, err := os.ReadFile(k.path())
	if err != nil {
		k.table = NewTable(p)
		return p, nil
	}
	k.table, err = p.Restore(text)
	if err == nil && !strings.Contains(string(text), `"defaultCpuSet":""`) {
		k.written = k.table.Text() // nothing has changed
	}
	return p, err
}

func (k *rerun) admit(s recordedStep, check func(what, got, want string)) {
	p := podOf(k.t, s)
	k.active = append(k.active, p)
	k.clean()
	check("qos", string(podspec.QosClass(p)), s.QoS)
	refusal := k.table.Admit(s.UID, Requests(p))
	if refusal == nil {
		refusal = &Refusal{}
	}
	check("reason", refusal.Reason, s.Reason)
	check("message", refusal.Message, s.Message)
	if s.Reason != "" {
		k.deactivate(s.UID)
		return
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		set, _ := k.table.Of(s.UID, c.Name)
		check("cpuset of "+c.Name, set.String(), s.Containers[c.Name])
	}
}

func (k *rerun) deactivate(uid string) {
	k.active = slices.DeleteFunc(k.active, func(p *v1.Pod) bool { return string(p.UID) == uid })
}

// clean frees what no active pod has, once all pods are known.
func (k *rerun) clean() {
	if !k.ready {
		return
	}
	k.table.Keep(func(uid, container string) bool {
		return slices.ContainsFunc(k.active, func(p *v1.Pod) bool {
			return string(p.UID) == uid && slices.ContainsFunc(Requests(p), func(r Request) bool { return r.Container == container })
		})
	})
}

func (k *rerun) running() []Running {
	var all []Running
	for _, p := range k.active {
		for _, r := range Requests(p) {
			key := Key{string(p.UID), r.Container}
			if id := k.runs[key]; id != "" {
				all = append(all, Running{key, id})
			}
		}
	}
	return all
}

// podOf reads the containers of a recorded pod: "app c1 2", "init i 1/2", "sidecar s".
func podOf(t *testing.T, s recordedStep) *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.UID = s.UID, types.UID(s.UID)
	if s.PodLevel {
		p.Spec.Resources = &v1.ResourceRequirements{Requests: amounts("4"), Limits: amounts("4")}
	}
	for _, text := range s.Pod {
		words := strings.Fields(text)
		c := v1.Container{Name: words[1]}
		if len(words) == 3 {
			request, limit, differs := strings.Cut(words[2], "/")
			if !differs {
				limit = request
			}
			c.Resources = v1.ResourceRequirements{Requests: amounts(request), Limits: amounts(limit)}
		}
		always := v1.ContainerRestartPolicyAlways
		switch words[0] {
		case "app":
			p.Spec.Containers = append(p.Spec.Containers, c)
			continue
		case "sidecar":
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	return p
}

func amounts(cpu string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("64Mi")}
}
