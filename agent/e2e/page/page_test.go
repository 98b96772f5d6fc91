//go:build e2e

package page

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

// envAxe is the variable with the path of axe-core.
const envAxe = "MONOPOD_AXE"

func TestMain(m *testing.M) {
	rig.Janitor()
	if os.Getenv(envAxe) == "" {
		fmt.Println("make test-page looks at the pages: it fetches what these tests need")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// widths are those of a phone and of a desktop, with the height of what is looked at.
var widths = map[int]int{390: 844, 1280: 800}

var schemes = []string{"light", "dark"}

// paths are the pages by name, of which root sees all.
func (s *site) paths() map[string]string {
	return map[string]string{"pods": "", "pod": "page/pod/default/mqtt-edge-7", "node": "page/node", "manifests": "page/manifests",
		"manifest": "page/manifest?path=" + url.QueryEscape(filepath.Join(s.dir, "mqtt.yaml")), "missing": "page/pod/default/gone"}
}

// The pages look as expected: on a phone and on a desktop, light and dark.
func TestPictures(t *testing.T) {
	s := serve(t)
	s.fill(t)
	b := chromium(t)
	for _, name := range []string{"pods", "pod", "manifest"} {
		for width, height := range widths {
			for _, scheme := range schemes {
				t.Run(fmt.Sprint(name, " ", width, " ", scheme), func(t *testing.T) {
					p := b.openStill(t, s.root+s.paths()[name], width, height, scheme)
					compare(t, fmt.Sprintf("%s-%d-%s.png", name, width, scheme), p.shot())
				})
			}
		}
	}
}

// openStill opens a page that nothing refreshes, as without its script, and that looks the same each
// time.
func (b *browser) openStill(t *testing.T, url string, width, height int, scheme string) *tab {
	t.Helper()
	p := b.open(t, "about:blank", width, height, scheme)
	p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	p.visit(url)
	p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
	p.eval(still, nil)
	return p
}

// still replaces what differs from one look to the next: moments, and the folder of the test.
const still = `(() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; n = walk.nextNode();) n.data = n.data.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+/, '2026-01-01 12:00:00 UTC').replace(/^\d\d:\d\d:\d\d$/, '12:00:00').replace(/\/\S*\/manifests/, '/etc/kubernetes/manifests');
})()`

const (
	// unlike is how much a channel of a pixel may differ, of 65535; differing is which share of the
	// pixels may differ more, as browsers draw letters a little differently from version to version.
	unlike    = 0x4000
	differing = 0.003
)

// compare compares a picture with the expected one, or writes that if MONOPOD_UPDATE=1.
func compare(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("MONOPOD_UPDATE") == "1" {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(data) > 100_000 {
		t.Errorf("the picture has %d bytes", len(data))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: MONOPOD_UPDATE=1 makes it: look at it", err)
	}
	if share := difference(t, want, data); share > differing {
		got := filepath.Join(os.TempDir(), "monopod-page-"+name)
		t.Errorf("%.1f %% of the pixels differ from %s; the picture is %s, MONOPOD_UPDATE=1 takes it (%v)", 100*share, path, got, os.WriteFile(got, data, 0o644))
	}
}

// difference returns the share of pixels that differ.
func difference(t *testing.T, want, got []byte) float64 {
	t.Helper()
	a, err := png.Decode(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	b, err := png.Decode(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	if a.Bounds() != b.Bounds() {
		return 1
	}
	n := 0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			if differs(a, b, x, y) {
				n++
			}
		}
	}
	return float64(n) / float64(a.Bounds().Dx()*a.Bounds().Dy())
}

func differs(a, b image.Image, x, y int) bool {
	r, g, l, _ := a.At(x, y).RGBA()
	s, h, m, _ := b.At(x, y).RGBA()
	far := func(p, q uint32) bool { return max(p, q)-min(p, q) > unlike }
	return far(r, s) || far(g, h) || far(l, m)
}

// axe-core finds nothing that keeps a person from using a page, and no page is wider than its window.
func TestAxeFindsNoViolation(t *testing.T) {
	axe, err := os.ReadFile(os.Getenv(envAxe))
	if err != nil {
		t.Fatalf("read axe-core: %v: make test-page fetches it", err)
	}
	s := serve(t)
	s.fill(t)
	b := chromium(t)
	for name, path := range s.paths() {
		for width, height := range widths {
			for _, scheme := range schemes {
				t.Run(fmt.Sprint(name, " ", width, " ", scheme), func(t *testing.T) {
					p := b.open(t, s.root+path, width, height, scheme)
					p.eval(string(axe)+"\n;0", nil)
					var found []string
					p.eval(`axe.run().then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join('; ')))`, &found)
					for _, violation := range found {
						t.Error(violation)
					}
					p.fits()
					p.isClean()
				})
			}
		}
	}
}

// fits reports a page that must be scrolled sideways.
func (p *tab) fits() {
	p.Helper()
	var over int
	p.eval("document.documentElement.scrollWidth - innerWidth", &over)
	if over > 0 {
		p.Errorf("the page is %d pixels wider than its window", over)
	}
}

// isClean reports what a page did that its policy forbids, and the errors of its script.
func (p *tab) isClean() {
	p.Helper()
	var wrong []string
	p.eval("window.wrong", &wrong)
	for _, text := range wrong {
		p.Errorf("the page: %s", text)
	}
}

// crash reports that the first container of a pod is in back-off, or well again.
func (s *site) crash(name string, crashed bool) {
	former, _ := s.store.Pod("default/" + name)
	p := former.DeepCopy()
	p.Status.ContainerStatuses[0].State = v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	if p.Status.ContainerStatuses[0].Ready = !crashed; crashed {
		p.Status.ContainerStatuses[0].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}
		p.Status.ContainerStatuses[0].LastTerminationState = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
	}
	s.store.SetPod("default/"+name, p)
}

// redIn is the time within which a pod that crashes is red.
const redIn = 2 * time.Second

// isRed is whether the state of the pod at a path is shown in red.
func isRed(path string) string {
	return fmt.Sprintf(`(() => { const row = document.querySelector('tr.pod.bad a[href=%s]'); if (!row) return false;
  const [r, g, b] = getComputedStyle(row.closest('tr').querySelector('.state')).color.match(/\d+/g).map(Number); return r > 2 * g && r > 2 * b; })()`, quoted(path))
}

// The page follows what happens without being loaded again: what has the focus keeps it.
func TestWhatChangesIsShownWithoutAReload(t *testing.T) {
	s := serve(t)
	s.fill(t)
	p := chromium(t).open(t, s.tcp, 1280, 800, "light")
	p.eval(`window.here = true; document.querySelector('a[href="/page/pod/default/web-edge-7"]').focus()`, nil)
	s.crash("db-edge-7", true)
	took := p.until(redIn, isRed("/page/pod/default/db-edge-7"))
	t.Logf("red after %s", took)
	p.until(redIn, `document.querySelector('h1').textContent === '2 of 6 pods are in trouble'`)
	p.until(0, `window.here && document.activeElement.getAttribute('href') === '/page/pod/default/web-edge-7'`)
	s.crash("db-edge-7", false)
	p.until(redIn, "!"+isRed("/page/pod/default/db-edge-7"))
	s.store.RemovePod("default/backup-edge-7")
	p.until(redIn, `document.querySelectorAll('tr.pod').length === 5`)
	p.isClean()
}

// A page of a monopod that is gone says from when it is.
func TestAPageSaysThatItIsOld(t *testing.T) {
	s := serve(t)
	s.fill(t)
	p := chromium(t).open(t, s.root, 390, 844, "dark")
	p.until(time.Second, `document.getElementById('stale').hidden`)
	s.leave()
	p.until(10*time.Second, `!document.getElementById('stale').hidden && document.getElementById('stale').textContent.startsWith('monopod does not answer. What you see is of ')`)
}

func TestAPageNeedsNoScriptAndNoMouse(t *testing.T) {
	s := serve(t)
	s.fill(t)
	b := chromium(t)
	with := b.open(t, s.root, 1280, 800, "light")
	with.eval(still, nil)
	p := b.openStill(t, s.root, 1280, 800, "light")
	if share := difference(t, with.shot(), p.shot()); share > differing {
		t.Errorf("without a script %.1f %% of the pixels differ", 100*share)
	}
	for _, want := range []string{"To the content", "monopod edge-7", "Pods", "Node", "Manifests", "mqtt"} {
		p.press("Tab", 9)
		var text string
		p.eval("document.activeElement.textContent.trim()", &text)
		if text != want {
			t.Errorf("the next thing by the keyboard is %q, not %q", text, want)
		}
	}
	p.press("Enter", 13)
	p.until(5*time.Second, `location.pathname === '/page/pod/default/mqtt-edge-7' && document.querySelector('h2') !== null`)
}

// press presses a key.
func (p *tab) press(key string, code int) {
	p.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if key == "Enter" && kind == "keyDown" {
			params["text"] = "\r"
		}
		p.call("Input.dispatchKeyEvent", params, nil)
	}
}

// Names and messages that want to be more stay text, in the page and when its script refreshes it.
func TestHostileTextStaysTextInABrowser(t *testing.T) {
	s := serve(t)
	s.fill(t)
	b := chromium(t)
	const act = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`
	former, _ := s.store.Pod("default/mqtt-edge-7")
	evil := former.DeepCopy()
	evil.Name, evil.UID = act+"\u202eevil", "evil"
	evil.Status.ContainerStatuses[0].LastTerminationState.Terminated.Message = act + strings.Repeat("wide", 2500) + "\u202e"
	for _, width := range []int{390, 1280} {
		p := b.open(t, s.root, width, widths[width], "light")
		s.store.SetPod("default/"+evil.Name, evil)
		p.until(redIn, `document.body.textContent.includes('onerror')`)
		p.visit(s.root + "page/pod/default/" + url.PathEscape(evil.Name))
		for _, path := range []string{p.where(), s.root} {
			p.visit(path)
			p.until(0, `window.hit === undefined && document.scripts.length === 1 && document.images.length === 1 && document.body.textContent.includes('<script>window.hit=1') && !/[\u202a-\u202e]/.test(document.body.textContent)`)
			p.fits()
			p.isClean()
		}
		s.store.RemovePod("default/" + evil.Name)
	}
}

// where returns the address of a page.
func (p *tab) where() (address string) {
	p.Helper()
	p.eval("location.href", &address)
	return address
}

// Two hundred pods are served within the time that a person takes for at once.
func TestManyPodsAreServedAtOnce(t *testing.T) {
	const most = 100 * time.Millisecond
	s := serve(t)
	pods := podsOf(t, "pods.yaml")
	for k := range 200 {
		p := pods[k%len(pods)].DeepCopy()
		p.Name = fmt.Sprintf("pod-%d-edge-7", k)
		p.UID += "-" + p.UID[:1]
		s.store.SetPod("default/"+p.Name, p)
	}
	best := time.Hour
	for range 10 {
		start := time.Now()
		body := get(t, s.tcp)
		best = min(best, time.Since(start))
		if n := strings.Count(body, `class="pod `); n != 200 {
			t.Fatalf("%d pods", n)
		}
	}
	t.Logf("served in %s", best)
	if best > most {
		t.Errorf("200 pods take %s", best)
	}
}

// A real container that crashes on a real runtime.
func TestACrashIsRed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	r, err := rig.Open(ctx, rig.Distro)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		leaks, err := r.Close(context.Background())
		if err != nil || len(leaks) > 0 {
			t.Errorf("left behind: %v, %v", leaks, err)
		}
	})
	binary, err := rig.Build(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.NewAgent(binary)
	if err != nil {
		t.Fatal(err)
	}
	a.Listen = "127.0.0.1:0"
	if err := a.Start(ctx); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(a.Log)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(log), "\n")
	_, page, found := strings.Cut(first, " page=")
	if !found {
		t.Fatalf("the first line of the log has no page: %s", first)
	}
	p := chromium(t).open(t, page, 1280, 800, "light")
	manifest := "{apiVersion: v1, kind: Pod, metadata: {name: crash}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: '" + rig.Busybox + "', command: [sh, -c, 'sleep 3; exit 3']}]}}"
	if err := a.Write("crash.yaml", manifest); err != nil {
		t.Fatal(err)
	}
	p.until(time.Minute, `document.querySelector('tr.pod.well') !== null`)
	p.until(10*time.Second, `/^\d+Mi$/.test(document.querySelector('td[data-name=memory] span').textContent)`)
	p.until(time.Minute, isRed("/page/pod/default/crash-"+rig.Node))
	seen, last := time.Now(), time.Time{}
	all, err := r.CRI.Containers(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if st, err := r.CRI.Status(ctx, c.ID); err == nil && st.FinishedAt > last.UnixNano() {
			last = time.Unix(0, st.FinishedAt)
		}
	}
	if took := seen.Sub(last); took > redIn || took < 0 {
		t.Errorf("red %s after the crash", took)
	} else {
		t.Logf("red %s after the crash", took)
	}
	p.isClean()
	if err := a.Clear(); err != nil {
		t.Error(err)
	}
	if err := rig.Until(ctx, time.Minute, func() error {
		left, err := r.CRI.Sandboxes(ctx, "")
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d sandboxes are left", len(left))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
