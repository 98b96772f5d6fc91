package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/agent/config"
	"monopod/agent/outlook"
	"monopod/agent/update"
	"monopod/manifests"
	"monopod/manifests/documents"
)

// foretells returns what the agent says that manifests would change, a line for each pod.
func (r *rig) foretells(docs ...string) string {
	r.Helper()
	docs = slices.DeleteFunc(docs, func(doc string) bool { return doc == "" })
	var pods []*manifests.Pod
	var objects []*manifests.Object
	for k, doc := range docs {
		c := documents.Read(fmt.Sprintf("/m/%d.yaml", k), []byte(doc), r.options)
		for _, p := range c.Pods {
			pods = append(pods, p.Pod)
		}
		for _, o := range c.Objects {
			objects = append(objects, o.Object)
		}
	}
	report, err := r.sync.Outlook(r.Context(), outlook.About(pods, objects, true))
	noErr(r.T, err)
	var lines []string
	for _, p := range report.Pods {
		text := string(p.Action) + " " + p.Name
		if p.Difference != nil {
			text += fmt.Sprint(p.Difference.Named(update.Restart))
		}
		for _, part := range []string{p.Reason, p.Waits, strings.Join(p.Objects, "; ")} {
			if part != "" {
				text += "; " + part
			}
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// What the agent foretells is what then happens: whether the pod stays the same one, and which of
// its containers do.
func TestWhatIsForetoldHappens(t *testing.T) {
	const extra = "terminationGracePeriodSeconds: 1"
	two := func(a, b string, spec ...string) string {
		return strings.Replace(manifest("web", a, append(spec, extra)...), "]\n", ", {name: d, image: "+b+"}]\n", 1)
	}
	annotated := func(doc, says string) string {
		return strings.Replace(doc, "{name: web}", "{name: web, annotations: {"+says+"}}", 1)
	}
	for _, row := range []struct {
		name   string
		policy string
		next   string
		want   string
		stays  string // of pod, c and d
	}{
		{"the same", "", two("img:1", "img:1"), "unchanged default/web-n", "pod c d"},
		{"a label", "", strings.Replace(two("img:1", "img:1"), "{name: web}", "{name: web, labels: {a: b}}", 1), "updated default/web-n[]", "pod c d"},
		{"an image", "", two("img:1", "img:2"), "restarted default/web-n[d]; spec.containers[d].image", "pod c"},
		{"a hostname", "", two("img:1", "img:1", "hostname: other"), "replaced default/web-n[]; spec.hostname", ""},
		{"an image, as the setting replaces", update.PolicyReplace, two("img:1", "img:2"), "replaced default/web-n[]; any change replaces it, as the setting updatePolicy says", ""},
		{"an image, as the annotation replaces", "", annotated(two("img:1", "img:2"), "monopod.update: replace"), "replaced default/web-n[]; any change replaces it, as its annotation monopod.update says", ""},
		{"an image, as the annotation does not", update.PolicyReplace, annotated(two("img:1", "img:2"), "monopod.update: in-place"), "restarted default/web-n[d]; spec.containers[d].image", "pod c"},
		{"none", "", "", "removed default/web-n", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.change(func(c *config.Config) { c.UpdatePolicy = row.policy })
				r.want(two("img:1", "img:1"))
				r.after(time.Minute)
				was := r.parts()
				before, calls := r.records(), len(r.Calls())
				if got := r.foretells(row.next); got != row.want {
					t.Errorf("foretold %q, want %q", got, row.want)
				}
				if !reflect.DeepEqual(before, r.records()) || len(r.Calls()) != calls {
					t.Errorf("the question changed %+v to %+v", before, r.records())
				}
				r.want(slices.DeleteFunc([]string{row.next}, func(doc string) bool { return doc == "" })...)
				r.after(time.Minute)
				now := r.parts()
				var stays []string
				for _, part := range []string{"pod", "c", "d"} {
					if was[part] == now[part] {
						stays = append(stays, part)
					}
				}
				if got := strings.Join(stays, " "); got != row.stays {
					t.Errorf("%q stays, want %q", got, row.stays)
				}
			})
		})
	}
}

// parts are the pod web and its containers, by their ids.
func (r *rig) parts() map[string]string {
	p, is := r.store.Pod("default/web-n")
	if !is {
		return nil
	}
	all := map[string]string{"pod": string(p.UID)}
	for _, c := range p.Status.ContainerStatuses {
		all[c.Name] = c.ContainerID
	}
	return all
}

// records are the sync loop's, as they are while it rests.
func (r *rig) records() map[string]string {
	r.settle()
	all := map[string]string{"the table": fmt.Sprint(r.sync.table.Len())}
	for key, one := range r.sync.pods.all {
		all[key.String()] = fmt.Sprintf("%+v %+v", one.Record, one.sent)
	}
	return all
}

func TestWhatAChangeWouldWaitForIsForetold(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.holds("web", "audit", "")
		const held = "held: audit (`monopod release web` ends it)"
		if got, want := r.foretells(manifest("web", "img:2")), "restarted default/web-n[c]; spec.containers[c].image; "+held; got != want {
			t.Errorf("of a held pod: %q, want %q", got, want)
		}
		const node = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
		if got, want := r.foretells(manifest("web", "img:1"), manifest("far", "img:1", "nodeSelector: {disk: ssd}")), "new default/far-n; "+node+"\nunchanged default/web-n"; got != want {
			t.Errorf("without room: %q, want %q", got, want)
		}
		if got, want := r.foretells(manifest("web", "img:1"), after("api", "db", "img:1")), "new default/api-n; waits for default/db to be ready: there is no pod default/db\nunchanged default/web-n"; got != want {
			t.Errorf("before its turn: %q, want %q", got, want)
		}
		if got, want := r.foretells(), "removed default/web-n; "+held; got != want {
			t.Errorf("of its removal: %q, want %q", got, want)
		}
		r.releases("web")
		r.offline("img:9")
		r.want(manifest("web", "img:9"))
		r.after(time.Minute)
		if got, want := r.foretells(manifest("web", "img:9")), "restarted default/web-n[c]; spec.containers[c].image; image img:9 cannot be pulled: "; !strings.HasPrefix(got, want) {
			t.Errorf("of what waits already: %q, want %q", got, want)
		}
	})
}

func TestWhatAnEditOfAnObjectMeansIsForetold(t *testing.T) {
	live(t, func(r *rig) {
		pod := refers("web", "env: [{name: A, valueFrom: {configMapKeyRef: {name: s, key: a}}}], volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, configMap: {name: s}}]")
		r.want(pod, object("ConfigMap", "s", "a: b"))
		r.after(time.Minute)
		const former = `unchanged default/web-n; ConfigMap "s": volumes follow; container c has the former value until it restarts`
		if got := r.foretells(pod, object("ConfigMap", "s", "a: c")); got != former {
			t.Errorf("of another value: %q, want %q", got, former)
		}
		if got, want := r.foretells(pod, object("ConfigMap", "s", "x: c")), former+"; its next start would fail: key a is gone"; got != want {
			t.Errorf("of a key that is gone: %q, want %q", got, want)
		}
		if got, want := r.foretells(pod), "unchanged default/web-n"; got != want {
			t.Errorf("of an object that is retained: %q, want %q", got, want)
		}
	})
}

// A panic over a question is the answer to it, and the loop goes on.
func TestAPanicOverAQuestionIsItsAnswer(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		_, err := r.sync.Outlook(r.Context(), &outlook.Asked{Pods: []outlook.Version{{Pod: nil}}})
		if err == nil || !strings.Contains(err.Error(), "panic") {
			t.Errorf("the answer is %v", err)
		}
		r.want(manifest("web", "img:1"), manifest("api", "img:1"))
		r.expect("default/web-n/c", "default/api-n/c")
	})
}

func TestAQuestionThatCannotBeReadIsRefused(t *testing.T) {
	for request, want := range map[string]string{
		"{":             "the request says no pods that this agent can read: unexpected EOF",
		`{"pods":[{}]}`: "the request has a pod that says nothing",
		`{"pods":[{"pod":{"spec":{"hostNetwork":"hunter2"}}}]}`: "the request says no pods that this agent can read: json: cannot unmarshal string into Go struct field PodSpec.pods.pod.spec.hostNetwork of type bool",
	} {
		_, err := new(Agent).outlook(t.Context(), strings.NewReader(request))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", request, err, want)
		}
	}
}
