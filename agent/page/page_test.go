package page

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/print"
	"monopod/agent/status"
	"monopod/manifests/decode"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// running is a pod that is well.
func running(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "registry.example/shop/app:1"}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
			{Name: "app", Ready: true, ContainerID: "containerd://1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-time.Hour))}}}}}}
}

// crashed is one in back-off, whose container left that message.
func crashed(name, message string) *v1.Pod {
	p := running(name)
	p.Status.ContainerStatuses[0] = v1.ContainerStatus{Name: "app", RestartCount: 3, ContainerID: "containerd://1",
		State:                v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: message}}}
	return p
}

func factsOf(pods ...*v1.Pod) *Facts {
	return &Facts{Version: "v1", Now: noon, Pods: slices.Values(pods)}
}

// written returns what a page has.
func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func overviewOf(t *testing.T, f *Facts) string {
	t.Helper()
	return written(t, func(w io.Writer) error { return Overview(w, f) })
}

func TestTheHeadlineSaysHowAllIs(t *testing.T) {
	for _, row := range []struct {
		name                     string
		trouble, way, well, over int
		wrong                    bool
		text, class              string
	}{
		{name: "nothing", text: "No pods", class: "over"},
		{name: "one that is well", well: 1, text: "The pod is well", class: "well"},
		{name: "some that are well", well: 3, text: "All 3 pods are well", class: "well"},
		{name: "all pods are well and a manifest is not", well: 3, wrong: true, text: "All 3 pods are well", class: "way"},
		{name: "one has ended", well: 2, over: 1, text: "1 of 3 pods has ended; all others are well", class: "well"},
		{name: "one starts", well: 1, way: 1, text: "1 of 2 pods is on its way", class: "way"},
		{name: "two start", well: 1, way: 2, over: 1, text: "2 of 4 pods are on their way", class: "way"},
		{name: "one is in trouble", trouble: 1, way: 2, well: 1, text: "1 of 4 pods is in trouble", class: "bad"},
		{name: "two are", trouble: 2, text: "2 of 2 pods are in trouble", class: "bad"},
	} {
		text, of := headline(map[print.Health]int{print.Trouble: row.trouble, print.OnTheWay: row.way, print.Well: row.well, print.Over: row.over}, row.wrong)
		if text != row.text || of != row.class {
			t.Errorf("%s: %q, %s", row.name, text, of)
		}
	}
}

func TestAPodInTroubleIsNamedAndSaysWhy(t *testing.T) {
	body := overviewOf(t, factsOf(running("a"), crashed("b", "no disk")))
	for _, want := range []string{`<h1 class="bad"><span role="status">1 of 2 pods is in trouble</span></h1>`, `<p class="troubled"><a href="/page/pod/default/b"><bdi>b</bdi></a>`,
		`<tr role="row" id="/page/pod/default/b" class="pod bad"><th role="rowheader" scope="row"><a href="/page/pod/default/b">`, `<b><bdi>container app</bdi></b>: <bdi>crashed 4 times (exit code 3: no disk)</bdi> <code><bdi>monopod logs b -p</bdi></code>`,
		`<tr role="row" id="/page/pod/default/a" class="pod well">`, `<bdi>app:1</bdi>`} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s in\n%s", want, body)
		}
	}
}

// hostile are texts that try to be something else.
var hostile = []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "javascript:alert(1)", "\u202egnirts\u202c", "a\x00b\x1b[31m", "' onload='x"}

// markup finds each tag of a page.
var markup = regexp.MustCompile(`<[a-zA-Z/!][^>]*>`)

// What names and messages say stays text: with hostile ones a page has the tags that it has without.
func TestHostileTextStaysText(t *testing.T) {
	pages := func(text string) []string {
		p := crashed("b", text)
		p.Namespace, p.Name = text, text
		p.Labels = map[string]string{text: text}
		p.Annotations = map[string]string{status.AnnProblems: `["` + strings.Repeat("x", 9) + `"]`, "kubernetes.io/config.hash": text}
		p.Spec.Containers[0].Image, p.Spec.Containers[0].Command = text, []string{text}
		p.Spec.Volumes = []v1.Volume{{Name: text, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: text}}}}
		p.Status.Conditions = []v1.PodCondition{{Type: "Ready", Status: "False", Reason: text, Message: text + "."}}
		f := factsOf(p)
		f.Logs, f.Version = true, text
		f.Node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: text, Labels: map[string]string{text: text}}, Status: v1.NodeStatus{NodeInfo: v1.NodeSystemInfo{OSImage: text, KernelVersion: text},
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: text, Message: text}}}}
		one := status.File{Path: "/etc/" + text, Pods: []string{text}, State: status.Rejected, Problems: []decode.Problem{{File: "/etc/" + text, Line: 1, Message: text}}}
		f.Runtime, f.Manifests = &status.Runtime{Endpoint: text, Error: text}, &status.Manifests{Dir: "/etc", Files: []status.File{one}}
		events := []v1.Event{{Type: text, Reason: text, Message: text, InvolvedObject: v1.ObjectReference{FieldPath: "spec.containers{" + text + "}"}}}
		return []string{overviewOf(t, f),
			written(t, func(w io.Writer) error { return Pod(w, f, p, events) }),
			written(t, func(w io.Writer) error { return Node(w, f, nil, events) }),
			written(t, func(w io.Writer) error { return Manifests(w, f) }),
			written(t, func(w io.Writer) error { return Manifest(w, f, one, []byte(text), "") }),
			written(t, func(w io.Writer) error { return Missing(w, f, text) })}
	}
	tags := func(page string) string {
		var all []string
		for _, tag := range markup.FindAllString(page, -1) {
			name, _, _ := strings.Cut(strings.Trim(tag, "<>"), " ")
			all = append(all, fmt.Sprint(name, strings.Count(tag, `="`)))
		}
		return strings.Join(all, " ")
	}
	plain := pages("plain")
	for _, text := range hostile {
		for k, page := range pages(text) {
			if tags(page) != tags(plain[k]) {
				t.Errorf("%q makes another page %d:\n%s", text, k, page)
			}
			if bad := regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{202a}-\x{202e}\x{2066}-\x{2069}]|href="javascript`).FindString(page); bad != "" {
				t.Errorf("%q leaves %q in page %d", text, bad, k)
			}
		}
	}
}

// The overview has the beginning of a long message, the page of the pod all of it.
func TestALongMessageIsCutAmongOthers(t *testing.T) {
	p := crashed("b", strings.Repeat("ä", 10_000)+"end")
	f := factsOf(p)
	if body := overviewOf(t, f); len(body) > 6000 || strings.Contains(body, "end)") || !strings.Contains(body, "ä…") {
		t.Errorf("the overview has %d bytes", len(body))
	}
	if body := written(t, func(w io.Writer) error { return Pod(w, f, p, nil) }); !strings.Contains(body, "ääend") {
		t.Errorf("the page of the pod lacks its end: %d bytes", len(body))
	}
}

func TestWhatAReaderMayNotSeeIsNotLinked(t *testing.T) {
	p := running("a")
	for _, root := range []bool{false, true} {
		f := factsOf(p)
		if f.Logs = root; root {
			f.Manifests = &status.Manifests{}
		}
		body := written(t, func(w io.Writer) error { return Pod(w, f, p, nil) })
		if log, files := strings.Contains(body, `href="/containerLogs/default/a/app?tailLines=500"`), strings.Contains(body, `href="/page/manifests"`); log != root || files != root {
			t.Errorf("root %v: log %v, manifests %v", root, log, files)
		}
	}
}

func TestThePageOfAPodHasTheProblemsOfItsManifest(t *testing.T) {
	f := factsOf()
	f.Manifests = &status.Manifests{Dir: "/m", Files: []status.File{
		{Path: "/m/a.yaml", Pods: []string{"default/a"}, Held: true, Problems: []decode.Problem{{File: "/m/a.yaml", Line: 2, Message: "no field"}}},
		{Path: "/m/b.yaml", Pods: []string{"default/b"}, Problems: []decode.Problem{{File: "/m/b.yaml", Message: "of another"}}},
		{Path: "/m/c.yaml", Versions: []status.Version{{Pod: "default/a", State: status.Superseded, By: "/m/a.yaml"}}}}}
	body := written(t, func(w io.Writer) error { return Pod(w, f, running("a"), nil) })
	for _, want := range []string{"<bdi>a.yaml:2: no field (the last good version of default/a runs on)</bdi>", "<dt><bdi>Manifest</bdi></dt><dd><code><bdi>/m/a.yaml</bdi>",
		"<dt><bdi>Also in</bdi></dt><dd><code><bdi>/m/c.yaml</bdi>", "<dt><bdi>Its version</bdi></dt><dd><bdi>superseded</bdi>"} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "of another") {
		t.Error("it has problems of others")
	}
}

func TestProblemsStandInTheTextOfAManifest(t *testing.T) {
	one := status.File{Path: "/m/web.yaml", State: status.Rejected, Problems: []decode.Problem{
		{File: "/m/web.yaml", Line: 2, Column: 3, Field: "spec.a", Message: "unknown field"}, {File: "/m/web.yaml", Line: 3, Message: "old", Warning: true}},
		Versions: []status.Version{{Pod: "default/web", State: status.Rejected, Line: 1, Reason: "no room"}}}
	f := factsOf()
	f.Manifests = &status.Manifests{Dir: "/m", Files: []status.File{one}}
	body := written(t, func(w io.Writer) error { return Manifest(w, f, one, []byte("a: 1\n  b: <2>\n\tc\n"), "") })
	for _, want := range []string{`<li class="marked"><code>a: 1</code><p class="bad"><bdi>default/web: no room</bdi></p></li>`,
		`<li class="marked"><code>  b: &lt;2&gt;</code><p class="bad"><bdi>spec.a: unknown field</bdi></p></li>`, "<code>\tc</code><p class=\"way\"><bdi>warning: old</bdi></p>"} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s in\n%s", want, body)
		}
	}
	body = written(t, func(w io.Writer) error { return Manifest(w, f, one, nil, "It may hold a Secret.") })
	if strings.Contains(body, "<ol>") || !strings.Contains(body, "<p>It may hold a Secret.</p>") || !strings.Contains(body, "web.yaml:2:3: spec.a: unknown field") {
		t.Errorf("a hidden text: %s", body)
	}
}

// points returns n points of a cpu that rises by step.
func points(n, step int) (all []status.Point) {
	for k := range n {
		all = append(all, status.Point{CPU: uint32(k * step)})
	}
	return all
}

func TestAPictureIsAsWideAsItsHour(t *testing.T) {
	words := func(n uint64) string { return fmt.Sprint(n) }
	for _, row := range []struct {
		name   string
		points []status.Point
		want   string // the path; "": no picture
	}{
		{"nothing", nil, ""},
		{"one point is no line", points(1, 1), ""},
		{"two points stand at the right", points(2, 100), "M118 23l2 -22"},
		{"a pod at rest is flat", points(60, 0), "M2 23h118"},
		{"a step in rest", slices.Concat(points(2, 0), points(2, 100)[1:], points(1, 0)), "M114 23h2l2 -22l2 22"},
	} {
		got := draw("cpu", row.points, cpuOf, words, 50)
		if row.want == "" && got != nil || row.want != "" && (got == nil || got.Line != row.want) {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
	if got := draw("cpu", points(60, 2), cpuOf, words, 50); got.Text != "cpu of the last 60 min: 0 to 118" {
		t.Errorf("in words: %s", got.Text)
	}
}

// many are the facts of a machine with n busy pods, one in ten of them in trouble.
func many(n int) *Facts {
	var all []*v1.Pod
	trends := map[string]status.Trend{}
	for k := range n {
		p := running(fmt.Sprintf("pod-%d", k))
		if k%10 == 9 {
			p = crashed(p.Name, "nc: invalid option")
		}
		p.UID = types.UID(fmt.Sprint("u-", k))
		all = append(all, p)
		t := status.Trend{CPU: new(uint64(1e6)), Memory: new(uint64(1e7))}
		for m := range 60 {
			t.Points = append(t.Points, status.Point{CPU: uint32(k * m % 71), Memory: uint32(1000 + k*m%997)})
		}
		trends[string(p.UID)] = t
	}
	f := factsOf(all...)
	f.Trends = trends
	return f
}

// The page of an edge box, with all that it loads, is below 60 kB.
func TestThePageIsSmall(t *testing.T) {
	size := len(overviewOf(t, many(20)))
	for name := range assetTypes {
		data, _ := Asset(name)
		size += len(data)
	}
	if size > 60_000 {
		t.Errorf("20 pods take %d bytes", size)
	}
}

// A page is written row by row: what is held at a time does not grow with the pods.
func TestManyPodsTakeLittleMemory(t *testing.T) {
	f := many(200)
	overviewOf(t, f) // templates are parsed once
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if err := Overview(&watcher{most: &after.HeapAlloc}, f); err != nil {
		t.Fatal(err)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("it held %d bytes", grown)
	}
}

// watcher is a reader that looks now and then at the memory in use.
type watcher struct {
	writes int
	most   *uint64
}

func (w *watcher) Write(p []byte) (int, error) {
	if w.writes++; w.writes%1000 == 0 {
		var now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&now)
		*w.most = max(*w.most, now.HeapAlloc)
	}
	return len(p), nil
}

func BenchmarkOverviewOf200Pods(b *testing.B) {
	f := many(200)
	b.ReportAllocs()
	for b.Loop() {
		if err := Overview(io.Discard, f); err != nil {
			b.Fatal(err)
		}
	}
}

func TestPagesLoadNothingFromElsewhere(t *testing.T) {
	f := many(3)
	outside := regexp.MustCompile(`(?i)https?://|//[a-z]|@import|url\(|style=|<style|\son[a-z]+=`)
	for _, text := range []string{overviewOf(t, f), asset(t, "style.css"), strings.ReplaceAll(asset(t, "script.js"), "// ", "")} {
		if found := outside.FindString(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")); found != "" {
			t.Errorf("there is %q in\n%s", found, text)
		}
	}
	if data, kind := Asset("overview.html"); data != nil || kind != "" {
		t.Error("templates are served")
	}
}

func asset(t *testing.T, name string) string {
	t.Helper()
	data, kind := Asset(name)
	if kind == "" {
		t.Fatalf("there is no %s", name)
	}
	return string(data)
}

// A manifest with Windows line ends is shown as it is.
func TestAManifestWithCRLFShowsNoStrayCharacters(t *testing.T) {
	body := written(t, func(w io.Writer) error {
		return Manifest(w, &Facts{Now: noon, Manifests: &status.Manifests{}}, status.File{Path: "/m/a.yaml"}, []byte("kind: Pod\r\nmetadata: {name: a}\r\n"), "")
	})
	if strings.Contains(body, "\ufffd") {
		t.Error("each line ends with a replacement character")
	}
}

// A pod in trouble has no container that is merely on its way because of what made it so.
func TestTheContainerOfAPodInTroubleIsInTrouble(t *testing.T) {
	for _, reason := range []string{"CrashLoopBackOff", "ImagePullBackOff", "CreateContainerConfigError"} {
		p := running("a")
		p.Status.ContainerStatuses[0].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
		_, of := factsOf().stateOf(&p.Status.ContainerStatuses[0])
		if want := class(print.Summarize(p, noon).Health); of != want {
			t.Errorf("%s: pod %s, container %s", reason, want, of)
		}
	}
}

// A pod that the owner stopped, that waits for its update or that restarts as its manifest says is not in trouble.
func TestAPodThatDoesAsItIsToldIsNotInTrouble(t *testing.T) {
	for _, reason := range []string{status.ReasonStopped, "UpdateWaits", "RestartingAllContainers"} {
		p := running("a")
		p.Status.Phase = v1.PodPending
		if reason == status.ReasonStopped {
			p.Status.Reason, p.Status.Message = reason, "stopped by request"
		}
		p.Status.ContainerStatuses[0] = v1.ContainerStatus{Name: "app", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}}
		if body := overviewOf(t, factsOf(p, running("b"))); strings.Contains(body, "1 of 2 pods is in trouble") {
			t.Errorf("%s: 1 of 2 pods is in trouble", reason)
		}
	}
}

// A page does not say that all is well above what it says is wrong with a pod.
func TestAPodWithAProblemIsNotCalledWell(t *testing.T) {
	p := running("a")
	p.Annotations = map[string]string{status.AnnProblems: `["its new version is rejected: spec.containers[0].image is empty"]`}
	body := overviewOf(t, factsOf(p))
	if strings.Contains(body, "is rejected") && strings.Contains(body, `<h1 class="well"><span role="status">The pod is well`) {
		t.Error("the pod is well, and its new version is rejected")
	}
}

// A clock that was set back makes no nonsense of ages.
func TestAClockThatWasSetBackMakesNoNonsense(t *testing.T) {
	p := running("a")
	p.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(noon.Add(time.Hour))
	body := written(t, func(w io.Writer) error { return Pod(w, factsOf(p), p, nil) })
	if strings.Contains(body, "&lt;invalid&gt;") {
		t.Error("Running for <invalid>")
	}
}

func TestAnInitContainerIsASidecarOnlyIfItIsAlwaysRestarted(t *testing.T) {
	for _, row := range []struct {
		policy *v1.ContainerRestartPolicy
		want   string
	}{
		{nil, "init container"},
		{new(v1.ContainerRestartPolicyNever), "init container"},
		{new(v1.ContainerRestartPolicyOnFailure), "init container"},
		{new(v1.ContainerRestartPolicyAlways), "sidecar"},
	} {
		p := running("web")
		p.Spec.InitContainers = []v1.Container{{Name: "first", RestartPolicy: row.policy}}
		text := written(t, func(w io.Writer) error { return Pod(w, factsOf(p), p, nil) })
		other := map[string]string{"init container": "sidecar", "sidecar": "init container"}[row.want]
		if !strings.Contains(text, row.want) || strings.Contains(text, other) {
			t.Errorf("with restartPolicy %v it is no %s", row.policy, row.want)
		}
	}
}
