package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
	"monopod/manifests"
)

// wish is a manifest of the model, as far as it varies.
type wish struct {
	name, image, policy string
	uid                 string // "": the agent makes one
	regular             []string
	before              []string // init containers and sidecars
	command, label      int
	grace               int
	host, volume        bool
	hooks, live         bool // postStart and preStop hooks, liveness probes
	deadline            int  // seconds; 0: none
	cpus                int  // requested
	refers              reference
	watched, unready    bool // the health of its updates matters; it never gets ready
}

// What the model's containers do follows from their names.
var modelPrograms = map[string][]critest.Program{
	"init":     {critest.ExitsAfter(time.Second, 0).Logs("x")},
	"slow":     {critest.ExitsAfter(20*time.Second, 0).Logs("x")},
	"flaky":    {critest.ExitsAfter(time.Second, 1).Logs("x"), critest.Exits(2).Logs("x"), critest.ExitsAfter(time.Second, 0).Logs("x")},
	"side":     {critest.Runs().Logs("x")},
	"car":      {critest.Runs().OnTerm(2*time.Second, 0).Logs("x")},
	"main":     {critest.Runs().Logs("x")},
	"late":     {critest.Runs().OnTerm(3*time.Second, 3).Logs("x")},
	"stubborn": {critest.Runs().IgnoresTerm().Logs("x")},
	"job":      {critest.ExitsAfter(40*time.Second, 0).Logs("x")},
	"crash":    {critest.ExitsAfter(5*time.Second, 1).Logs("x")},
	"broken":   {critest.FailsToStart(fmt.Errorf("no such file")), critest.Runs().Logs("x")},
}

// exits reports whether a container ends by itself, however often it is started.
func exits(name string) bool { return name == "job" || name == "crash" }

func newWish(r *rand.Rand, name string) wish {
	w := wish{name: name, image: "img:1", policy: pick(r, "Always", "Always", "OnFailure", "Never"), grace: pick(r, 0, 3, 30)}
	if r.IntN(3) == 0 {
		w.uid = "uid-of-" + pick(r, modelPods...)
	}
	w.host, w.volume, w.hooks, w.live = r.IntN(5) == 0, r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(3) == 0
	if r.IntN(6) == 0 {
		w.deadline = 300
	}
	w.cpus = pick(r, 0, 0, 0, 1, 2, modelCPUs+1)
	w.refers = pick(r, toNothing, toNothing, toNothing, toVariable, toFile, toRestart)
	w.regular = some(r, 1+r.IntN(3), "main", "late", "stubborn", "job", "crash", "broken")
	w.before = some(r, r.IntN(3), "init", "slow", "flaky", "side", "car")
	return w
}

// edit changes one thing.
func (w wish) edit(r *rand.Rand) (wish, string) {
	switch r.IntN(15) {
	case 14:
		w.refers = pick(r, toNothing, toVariable, toFile, toRestart)
		return w, fmt.Sprintf("refers to %q", w.refers)
	case 8:
		w.hooks = !w.hooks
		return w, fmt.Sprint("hooks ", w.hooks)
	case 9:
		w.live = !w.live
		return w, fmt.Sprint("liveness ", w.live)
	case 10:
		w.deadline = 300 - w.deadline
		return w, fmt.Sprint("deadline ", w.deadline)
	case 12, 13:
		w.cpus = pick(r, 0, 1, 2, modelCPUs)
		return w, fmt.Sprint("cpus ", w.cpus)
	case 0, 1:
		w.image = fmt.Sprintf("img:%d", 1+r.IntN(4))
		return w, "image " + w.image
	case 2:
		w.command++
		return w, "command"
	case 3:
		w.label++
		return w, "label"
	case 4:
		w.policy = pick(r, "Always", "OnFailure", "Never")
		return w, "policy " + w.policy
	case 5:
		w.before = some(r, r.IntN(4), "init", "slow", "flaky", "side", "car")
		return w, fmt.Sprint("before ", w.before)
	case 6:
		w.regular = some(r, 1+r.IntN(3), "main", "late", "stubborn", "job", "crash", "broken")
		return w, fmt.Sprint("regular ", w.regular)
	case 7:
		w.host = !w.host
		return w, fmt.Sprint("host ", w.host)
	}
	if w.uid == "" {
		w.uid = "uid-of-" + pick(r, modelPods...)
	} else {
		w.uid = ""
	}
	return w, fmt.Sprintf("uid %q", w.uid)
}

// pod returns the wish as the manifests package offers it.
func (w wish) pod(o manifests.Options) *manifests.Pod {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  labels: {v: \"%d\"}\n%s", w.name, w.label, w.annotations())
	if w.uid != "" {
		fmt.Fprintf(&b, "  uid: %s\n", w.uid)
	}
	fmt.Fprintf(&b, "spec:\n  restartPolicy: %s\n  hostNetwork: %v\n  terminationGracePeriodSeconds: %d\n", w.policy, w.host, w.grace)
	if w.deadline > 0 {
		fmt.Fprintf(&b, "  activeDeadlineSeconds: %d\n", w.deadline)
	}
	var volumes, mounts []string
	if w.volume {
		volumes, mounts = append(volumes, "{name: v, emptyDir: {}}"), append(mounts, "{name: v, mountPath: /v}")
	}
	if w.refers == toFile {
		volumes, mounts = append(volumes, "{name: conf, configMap: {name: conf}}"), append(mounts, "{name: conf, mountPath: /conf}")
	}
	fmt.Fprintf(&b, "  volumes: [%s]\n", strings.Join(volumes, ", "))
	if len(w.before) > 0 {
		b.WriteString("  initContainers:\n")
	}
	for _, c := range w.before {
		more := ""
		if sidecarName(c) {
			more = ", restartPolicy: Always" + w.extras(c)
		}
		fmt.Fprintf(&b, "  - {name: %s, image: \"img:1\"%s}\n", c, more)
	}
	b.WriteString("  containers:\n")
	for k, c := range w.regular {
		more := w.extras(c)
		if k == 0 {
			more += fmt.Sprintf(", resources: {requests: {cpu: %d}}", w.cpus)
		}
		more += fmt.Sprintf(", volumeMounts: [%s]", strings.Join(mounts, ", ")) + w.refers.variable()
		fmt.Fprintf(&b, "  - {name: %s, image: %q, command: [\"%d\"]%s}\n", c, w.image, w.command, more)
	}
	pods, problems := manifests.Decode("/m/"+w.name+".yaml", []byte(b.String()), o)
	if len(pods) != 1 {
		panic(fmt.Sprint(problems, b.String()))
	}
	return pods[0]
}

// extras are a container's hooks and probe. What the commands do is the walk's.
func (w wish) extras(c string) string {
	text := ""
	if w.hooks {
		text += ", lifecycle: {postStart: {exec: {command: [post]}}, preStop: {exec: {command: [pre]}}}"
	}
	if w.live {
		text += ", livenessProbe: {exec: {command: [live]}, periodSeconds: 20, failureThreshold: 1}"
	}
	if w.unready && !sidecarName(c) {
		text += ", readinessProbe: {exec: {command: [unready]}, periodSeconds: 2}"
	}
	return text
}

func sidecarName(c string) bool { return c == "side" || c == "car" }

func (w wish) String() string {
	return fmt.Sprintf("%s %s %v before %v uid %q host %v grace %d hooks %v liveness %v deadline %d cpus %d refers %q",
		w.image, w.policy, w.regular, w.before, w.uid, w.host, w.grace, w.hooks, w.live, w.deadline, w.cpus, w.refers)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// some returns n of them, in any order.
func some(r *rand.Rand, n int, of ...string) []string {
	out := slices.Clone(of)
	r.Shuffle(len(out), func(a, b int) { out[a], out[b] = out[b], out[a] })
	return out[:n]
}

// mayEnd reports whether a pod may end in that way.
func mayEnd(p *v1.Pod, st *v1.PodStatus, now time.Time) bool {
	policy, phase := p.Spec.RestartPolicy, st.Phase
	if st.Reason == "DeadlineExceeded" {
		d := p.Spec.ActiveDeadlineSeconds
		return d != nil && phase == v1.PodFailed && now.Sub(st.StartTime.Time) >= time.Duration(*d)*time.Second
	}
	return policy == v1.RestartPolicyNever || policy == v1.RestartPolicyOnFailure && phase == v1.PodSucceeded
}
