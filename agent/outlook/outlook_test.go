package outlook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/hold"
	"monopod/agent/message"
	"monopod/agent/objects"
	"monopod/agent/plan"
	"monopod/agent/prepare"
	"monopod/agent/rollout"
	"monopod/agent/update"
	"monopod/agent/window"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// noon is when these tests take place, a Monday.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// pod is a pod as a manifest gives it; its uid and digest follow from that.
func pod(t *testing.T, metadata, spec string) *manifests.Pod {
	t.Helper()
	text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web%s}\nspec: {%s}\n", metadata, spec)
	pods, problems := manifests.Decode("/m/web.yaml", []byte(text), manifests.Options{NodeName: "n", NameSuffix: true})
	if len(pods) != 1 {
		t.Fatal(problems)
	}
	return pods[0]
}

// web is a pod with an image, and annotations.
func web(t *testing.T, image string, annotations ...string) *manifests.Pod {
	t.Helper()
	return pod(t, ", annotations: {"+strings.Join(annotations, ", ")+"}", "containers: [{name: c, image: '"+image+"'}]")
}

// runs is a pod that runs as its manifest says.
func runs(p *manifests.Pod, change ...func(*rollout.Record)) rollout.Record {
	r := rollout.Record{Key: p.Key(), Offered: p, Accepted: p, Works: true, Started: rollout.VersionOf(p), Now: rollout.Decision{Run: p}, Seen: rollout.Seen{Ready: true}}
	r.Lock = rollout.LockOf(p.Pod, rollout.Lock{})
	for _, do := range change {
		do(&r)
	}
	return r
}

func held(r *rollout.Record)  { r.Hold = &hold.Hold{Reason: "audit", Since: noon} }
func ended(r *rollout.Record) { r.Over = true }

// refused is a pod that a manifest gives and that was not let start.
func refused(r *rollout.Record) {
	r.Accepted, r.Works, r.Now, r.Started = nil, false, rollout.Decision{}, rollout.Version{}
}

func stopped(r *rollout.Record) {
	r.Stop, r.Accepted = &rollout.Stop{Version: r.Accepted}, nil
}

// nodeOf is a node with these pods, where nothing keeps anything away.
func nodeOf(records ...rollout.Record) *Node {
	all := map[manifests.Key]rollout.Record{}
	n := &Node{
		World: &rollout.World{Now: checkpoint.Moment{Wall: noon}, Rules: rollout.Rules{LockMax: time.Hour},
			Names:      rollout.Names{Suffix: "-n", Has: func(key manifests.Key) bool { _, is := all[key]; return is }},
			Ready:      func(key manifests.Key) bool { r := all[key]; return r.Seen.Ready },
			Terminated: func(manifests.Key) (h plan.Halt, is bool) { return h, false },
			StopsFirst: func(*v1.Pod) bool { return false },
			Limits:     func(p *manifests.Pod) update.Limits { return update.LimitsOf(p.Pod, 0, 10*time.Second) },
			Room:       func(*manifests.Pod) *admission.Rejection { return nil }},
		Record:   func(key manifests.Key) rollout.Record { r := all[key]; r.Key = key; return r },
		Reported: func(manifests.Key) (*v1.Pod, bool) { return nil, false },
	}
	for _, r := range records {
		all[r.Key] = r
		n.Names = append(n.Names, r.Key)
	}
	return n
}

// said writes a report in a line: of each pod what becomes of it, why, and what that waits for.
func said(r Report) string {
	var all []string
	for _, p := range r.Pods {
		text := string(p.Action) + " " + p.Name
		for _, part := range [][2]string{{"because", p.Reason}, {"waits", p.Waits}, {"trial", p.Trial}, {"back", p.RolledBack}} {
			if part[1] != "" {
				text += "; " + part[0] + ": " + part[1]
			}
		}
		all = append(all, strings.Join(append([]string{text}, p.Objects...), "; "))
	}
	return strings.Join(all, " | ")
}

func TestWhatBecomesOfAPod(t *testing.T) {
	v1st, v2nd := web(t, "img:1"), web(t, "img:2")
	renamed := pod(t, ", annotations: {}", "hostname: other, containers: [{name: c, image: 'img:2'}]")
	far := web(t, "img:1")
	far.Annotations["kubernetes.io/config.source"] = "http"
	const container, byHold, byNode = "; because: spec.containers[c].image", "held: audit (`monopod release web-n` ends it)", "the node is held: a visit (`monopod release` ends it)"
	hold := strings.ReplaceAll(byHold, "web-n", "web")
	full := func(n *Node) {
		n.World.Room = func(*manifests.Pod) *admission.Rejection {
			return &admission.Rejection{Reason: "OutOfcpu", Message: message.Fixed("no cpu is left")}
		}
	}
	nodeHeld := func(n *Node) { n.World.NodeHold = heldNode }
	replace := func(n *Node) { n.World.Policy = update.PolicyReplace }
	closed := func(n *Node) { n.World.Rules.Windows, _ = window.Parse("Sun 02:00-04:00") }
	const shut = "outside of the update window, which opens Sun 2026-05-10 02:00:00 UTC"
	for _, row := range []struct {
		name    string
		is      []rollout.Record
		desired []*manifests.Pod
		whole   bool // the manifests are all that there are
		change  []func(*Node)
		want    string
	}{
		{"one that is not there", nil, []*manifests.Pod{v1st}, false, nil, "new default/web-n"},
		{"one that runs so", []rollout.Record{runs(v1st)}, []*manifests.Pod{v1st}, false, nil, "unchanged default/web-n"},
		{"another version", []rollout.Record{runs(v1st)}, []*manifests.Pod{v2nd}, false, nil, "restarted default/web-n" + container},
		{"another label", []rollout.Record{runs(v1st)}, []*manifests.Pod{pod(t, ", annotations: {}, labels: {a: b}", "containers: [{name: c, image: 'img:1'}]")}, false, nil, "updated default/web-n"},
		{"what only another sandbox has", []rollout.Record{runs(v1st)}, []*manifests.Pod{renamed}, false, nil, "replaced default/web-n; because: spec.hostname"},
		{"where the setting replaces", []rollout.Record{runs(v1st)}, []*manifests.Pod{v2nd}, false, []func(*Node){replace}, "replaced default/web-n; because: any change replaces it, as the setting updatePolicy says"},
		{"where its annotation replaces", []rollout.Record{runs(v1st)}, []*manifests.Pod{web(t, "img:2", "monopod.update: replace")}, false, nil,
			"replaced default/web-n; because: any change replaces it, as its annotation monopod.update says"},
		{"where its annotation keeps it in place", []rollout.Record{runs(v1st)}, []*manifests.Pod{web(t, "img:2", "monopod.update: in-place")}, false, []func(*Node){replace}, "restarted default/web-n" + container},
		{"where both replace, and a field does by itself", []rollout.Record{runs(v1st)}, []*manifests.Pod{renamed}, false, []func(*Node){replace}, "replaced default/web-n; because: spec.hostname"},
		{"one that has ended", []rollout.Record{runs(v1st, ended)}, []*manifests.Pod{v2nd}, false, nil, "replaced default/web-n; because: it has ended, and runs again"},
		{"one that has ended, and stays so", []rollout.Record{runs(v1st, ended)}, []*manifests.Pod{v1st}, false, nil, "unchanged default/web-n"},
		{"one that was not let start", []rollout.Record{runs(v1st, refused)}, []*manifests.Pod{v2nd}, false, nil, "new default/web-n"},
		{"one beside the files", []rollout.Record{runs(v1st)}, nil, false, nil, ""},
		{"one that no file gives any more", []rollout.Record{runs(v1st)}, nil, true, nil, "removed default/web-n"},
		{"one of the URL", []rollout.Record{runs(far)}, nil, true, nil, ""},

		{"what does not change waits for nothing", []rollout.Record{runs(v1st, held)}, []*manifests.Pod{v1st}, false, []func(*Node){nodeHeld, full, closed}, "unchanged default/web-n"},
		{"a new one waits for the node", nil, []*manifests.Pod{v1st}, false, []func(*Node){nodeHeld}, "new default/web-n; waits: " + byNode},
		{"or for room", nil, []*manifests.Pod{v1st}, false, []func(*Node){full}, "new default/web-n; waits: no cpu is left"},
		{"so does one that has its manifest", []rollout.Record{runs(v1st, refused)}, []*manifests.Pod{v1st}, false, []func(*Node){full}, "unchanged default/web-n; waits: no cpu is left"},
		{"a change waits for holds, the window and room", []rollout.Record{runs(v1st, held)}, []*manifests.Pod{v2nd}, false, []func(*Node){nodeHeld, closed, full},
			"restarted default/web-n" + container + "; waits: " + hold + "; " + byNode + "; " + shut + "; no cpu is left"},
		{"a change in place does, too", []rollout.Record{runs(v1st, held)}, []*manifests.Pod{pod(t, ", annotations: {}, labels: {a: b}", "containers: [{name: c, image: 'img:1'}]")}, false, nil, "updated default/web-n; waits: " + hold},
		{"a removal waits for all but room", []rollout.Record{runs(v1st, held)}, nil, true, []func(*Node){nodeHeld, closed, full}, "removed default/web-n; waits: " + hold + "; " + byNode + "; " + shut},
		{"what was never made gives way", []rollout.Record{runs(v1st, held, func(r *rollout.Record) { r.Seen.Unmade = true })}, []*manifests.Pod{v2nd}, false, nil, "restarted default/web-n" + container},
		{"one that has ended waits for the node alone", []rollout.Record{runs(v1st, held, ended)}, []*manifests.Pod{v2nd}, false, []func(*Node){nodeHeld, closed},
			"replaced default/web-n; because: it has ended, and runs again; waits: " + byNode},
		{"its removal waits for nothing", []rollout.Record{runs(v1st, held, ended)}, nil, true, []func(*Node){nodeHeld}, "removed default/web-n"},
		{"one that its owner stopped", []rollout.Record{runs(v1st, stopped)}, []*manifests.Pod{v2nd}, false, nil,
			"restarted default/web-n" + container + "; waits: stopped by request; `monopod start` runs it again"},
		{"a version that waits already says what it lacks", []rollout.Record{runs(v1st, func(r *rollout.Record) {
			r.Offered, r.Now.Prepare = v2nd, v2nd
			r.Prepared = prepare.State{Of: v2nd, Lacks: []prepare.Lack{{Text: "image img:2 cannot be pulled: no route to host"}}}
		})}, []*manifests.Pod{v2nd}, false, nil, "restarted default/web-n" + container + "; waits: image img:2 cannot be pulled: no route to host"},
		{"what another version lacked is not said", []rollout.Record{runs(v1st, func(r *rollout.Record) {
			r.Offered, r.Now.Prepare = v2nd, v2nd
			r.Prepared = prepare.State{Of: v2nd, Lacks: []prepare.Lack{{Text: "image img:2 cannot be pulled: no route to host"}}}
		})}, []*manifests.Pod{web(t, "img:3")}, false, nil, "restarted default/web-n" + container},
		{"its turn", []rollout.Record{runs(v1st)}, []*manifests.Pod{web(t, "img:2", "monopod.start-after: db")}, false, nil,
			"restarted default/web-n; because: spec.containers[c].image; waits: waits for default/db to be ready: there is no pod default/db"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := nodeOf(row.is...)
			for _, change := range row.change {
				change(n)
			}
			before := fmt.Sprintf("%+v", row.is)
			r := n.Of(About(row.desired, nil, row.whole))
			if got := said(r); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
			if after := fmt.Sprintf("%+v", row.is); after != before {
				t.Errorf("the record was %s and is %s", before, after)
			}
			changes := 0
			if row.want != "" && !strings.HasPrefix(row.want, "unchanged") {
				changes = 1
			}
			if r.Changes != changes {
				t.Errorf("%d changes, want %d", r.Changes, changes)
			}
		})
	}
}

var heldNode = &hold.Hold{Reason: "a visit", Since: noon}

// The workload of a pod may lock it: of what that does nothing is known while no change waits.
func TestALockIsNamed(t *testing.T) {
	const volume = `volumes: [{name: run, emptyDir: {}}], containers: [{name: c, image: 'img:%d', volumeMounts: [{name: run, mountPath: /run}]}]`
	locks := ", annotations: {" + annotations.UpdateLock + ": /run/lock}"
	is, next := pod(t, locks, fmt.Sprintf(volume, 1)), pod(t, locks, fmt.Sprintf(volume, 2))
	got := said(nodeOf(runs(is)).Of(About([]*manifests.Pod{next}, nil, false)))
	const want = "restarted default/web-n; because: spec.containers[c].image; waits: the lock of its workload, if /run/lock is there"
	if got != want {
		t.Errorf("\n got  %s\n want %s", got, want)
	}
	locked := runs(is, func(r *rollout.Record) { r.Lock.State, r.Lock.Since = rollout.Held, checkpoint.Moment{Wall: noon} })
	got = said(nodeOf(locked).Of(About([]*manifests.Pod{next}, nil, false)))
	if want := "waits: locked by its workload: /run/lock, at most until 2026-05-04 13:00:00 UTC"; !strings.Contains(got, want) {
		t.Errorf("of one that is held it says %s", got)
	}
}

func TestAVersionThatGivesWayUnlessItWorksSaysSo(t *testing.T) {
	v1st, v2nd, own := web(t, "img:1"), web(t, "img:2"), web(t, "img:2", annotations.UpdateHealth+": 45s")
	comes := func(within string) string {
		return "restarted default/web-n; because: spec.containers[c].image; trial: the version that runs comes back, if it works, unless this one is ready within " + within + " and stays so for 10s"
	}
	gaveWay := func(r *rollout.Record) {
		r.Trial = &rollout.Trial{Former: v1st, Images: map[string]string{"c": "img@sha256:" + strings.Repeat("a", 64)}, Pinned: v1st, Tried: v2nd, Reason: "it was not ready within 1m0s", Safe: true, Judged: true, Said: true}
	}
	for _, row := range []struct {
		name   string
		is     []rollout.Record
		next   *manifests.Pod
		within time.Duration
		want   string
	}{
		{"none is asked for", []rollout.Record{runs(v1st)}, v2nd, 0, "restarted default/web-n; because: spec.containers[c].image"},
		{"by the setting", []rollout.Record{runs(v1st)}, v2nd, time.Minute, comes("1m0s")},
		{"by the annotation", []rollout.Record{runs(v1st)}, own, time.Minute, comes("45s")},
		{"nothing starts", []rollout.Record{runs(v1st)}, v1st, time.Minute, "unchanged default/web-n"},
		{"nothing ran", nil, v2nd, time.Minute, "new default/web-n"},
		{"what ran has ended", []rollout.Record{runs(v1st, ended)}, v2nd, time.Minute, "replaced default/web-n; because: it has ended, and runs again"},
		{"it gave way already", []rollout.Record{runs(v1st, gaveWay)}, v2nd, time.Minute,
			"unchanged default/web-n; back: update rolled back: version " + fmt.Sprintf("%.8s", v2nd.Annotations["kubernetes.io/config.hash"]) + " (img:2): it was not ready within 1m0s; the former version is back until the manifest changes"},
		{"another one is tried after that", []rollout.Record{runs(v1st, gaveWay)}, web(t, "img:3"), time.Minute, comes("1m0s")},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := nodeOf(row.is...)
			n.World.Limits = func(p *manifests.Pod) update.Limits { return update.LimitsOf(p.Pod, row.within, 10*time.Second) }
			if got := said(n.Of(About([]*manifests.Pod{row.next}, nil, false))); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

// A version that came back runs with the digests of its images, which no manifest has.
func TestWhatChangesAfterARollbackIsSaidAsTheManifestsHaveIt(t *testing.T) {
	v1st, v2nd := web(t, "img:1"), web(t, "img:2")
	digest := "img@sha256:" + strings.Repeat("a", 64)
	pinned := web(t, digest)
	pinned.Digest = "of the pinned one"
	back := rollout.Trial{Former: v1st, Images: map[string]string{"c": digest}, Pinned: pinned, Tried: v2nd, Reason: "it was not ready", Safe: true, Judged: true, Said: true}
	for _, row := range []struct {
		name       string
		is, offers *manifests.Pod
		want       string
	}{
		{"another version", pinned, web(t, "img:3"), `restarted [spec.containers[c].image: "img:1" -> "img:3"]`},
		{"the way back waits", v2nd, v2nd, `restarted [spec.containers[c].image: "img:2" -> "img:1"]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			trial := back
			r := runs(row.is, func(r *rollout.Record) { r.Trial = &trial })
			got := nodeOf(r).Of(About([]*manifests.Pod{row.offers}, nil, false)).Pods[0]
			if text := fmt.Sprint(got.Action, " ", got.Difference.Fields); text != row.want {
				t.Errorf("\n got  %s\n want %s", text, row.want)
			}
		})
	}
}

func secret(data ...string) []*manifests.Object {
	s := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{}}
	for k := 0; k < len(data); k += 2 {
		s.Data[data[k]] = []byte(data[k+1])
	}
	return []*manifests.Object{manifests.NewObject(nil, s, "/m/s.yaml")}
}

func TestWhatEditsOfObjectsMeanToPods(t *testing.T) {
	const env = "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: password}}}]"
	broker := func(image string) *manifests.Pod {
		return pod(t, "", "containers: [{name: c, image: '"+image+"', "+env+"}, {name: other, image: i, "+env+"}]")
	}
	v1st, v2nd := broker("img:1"), broker("img:2")
	reported := &v1.Pod{Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{
		{Name: "c", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		{Name: "other", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}}}}}
	const former = `Secret "s": container c has the former value until it restarts`
	for _, row := range []struct {
		name    string
		is      []rollout.Record
		desired []*manifests.Pod
		given   []*manifests.Object
		policy  string
		want    string
		changes int
	}{
		{"the same content", []rollout.Record{runs(v1st)}, []*manifests.Pod{v1st}, secret("password", "hunter2"), "", "unchanged default/web-n", 0},
		{"another value", []rollout.Record{runs(v1st)}, []*manifests.Pod{v1st}, secret("password", "hunter3"), "", "unchanged default/web-n; " + former, 1},
		{"and the pod is not among the files", []rollout.Record{runs(v1st)}, nil, secret("password", "hunter3"), "", "unchanged default/web-n; " + former, 1},
		{"a key that is gone", []rollout.Record{runs(v1st)}, []*manifests.Pod{v1st}, secret("user", "one"), "", "unchanged default/web-n; " + former + "; its next start would fail: key password is gone", 1},
		{"a container that restarts has the new value", []rollout.Record{runs(v1st)}, []*manifests.Pod{v2nd}, secret("password", "hunter3"), "", "restarted default/web-n; because: spec.containers[c].image", 1},
		{"and lacks what is gone", []rollout.Record{runs(v1st)}, []*manifests.Pod{v2nd}, secret("user", "one"), "",
			"restarted default/web-n; because: spec.containers[c].image; waits: couldn't find key password in Secret default/s; Secret \"s\": its next start would fail: key password is gone", 1},
		{"and so has a pod that is replaced", []rollout.Record{runs(v1st)}, []*manifests.Pod{v2nd}, secret("password", "hunter3"), update.PolicyReplace,
			"replaced default/web-n; because: any change replaces it, as the setting updatePolicy says", 1},
		{"a pod that has ended", []rollout.Record{runs(v1st, ended)}, []*manifests.Pod{v1st}, secret("password", "hunter3"), "", "unchanged default/web-n", 0},
		{"a pod that is new", nil, []*manifests.Pod{v1st}, secret("password", "hunter3"), "", "new default/web-n", 1},
		{"a pod that is new, and lacks a key", nil, []*manifests.Pod{v1st}, secret("user", "one"), "", "new default/web-n; waits: couldn't find key password in Secret default/s", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := nodeOf(row.is...)
			n.World.Policy, n.Objects = row.policy, objects.NewSet(secret("password", "hunter2"))
			n.Reported = func(manifests.Key) (*v1.Pod, bool) { return reported, true }
			r := n.Of(About(row.desired, row.given, false))
			if got := said(r); got != row.want || r.Changes != row.changes {
				t.Errorf("\n got  %s, %d changes\n want %s, %d", got, r.Changes, row.want, row.changes)
			}
			n.NoObjects = true
			if got := said(n.Of(About(row.desired, row.given, false))); strings.Contains(got, "ecret") {
				t.Errorf("where no objects are known it says %s", got)
			}
		})
	}
}

// What is asked and answered is the same on both sides of the socket.
func TestAskedAndAnsweredOverTheSocket(t *testing.T) {
	v1st, v2nd := web(t, "img:1"), web(t, "img:2")
	over := func(from, to any) {
		data, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var asked Asked
	over(About([]*manifests.Pod{v1st}, secret("password", "hunter2"), true), &asked)
	n := nodeOf(runs(v1st))
	n.Objects = objects.NewSet(secret("password", "hunter2"))
	if got, want := said(n.Of(&asked)), "unchanged default/web-n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	over(About([]*manifests.Pod{v2nd}, nil, false), &asked)
	report := n.Of(&asked)
	var answer Report
	over(report, &answer)
	if answer.Pods[0].Difference.Kind != update.Restart || said(answer) != said(report) || answer.Changes != 1 {
		t.Errorf("got %+v of %+v", answer, report)
	}
}
