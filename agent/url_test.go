package agent

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"monopod/agent/config"
	"monopod/agent/settings"
	"monopod/cri/critest"
	"monopod/manifests/signature"
)

// give is a server of manifests. Its answer is a status and a body.
type give struct {
	*httptest.Server
	code atomic.Int32
	body atomic.Pointer[string]
}

func newGive(t *testing.T) *give {
	g := &give{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "secret" {
			w.WriteHeader(401)
			return
		}
		w.WriteHeader(int(g.code.Load()))
		io.WriteString(w, *g.body.Load())
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *give) answer(code int, pods ...string) {
	text := "apiVersion: v1\nkind: List\nitems: []\n"
	for _, pod := range pods {
		text += "---\n" + manifest(pod, "img:1", "terminationGracePeriodSeconds: 1")
	}
	g.body.Store(&text)
	g.code.Store(int32(code))
}

func (g *give) url() string {
	return strings.Replace(g.URL, "//", "//me:secret@", 1) + "/pods?key=secret"
}

func (g *give) configure(c *config.Config) {
	c.ManifestURL, c.ManifestURLHeader = g.url(), map[string]config.Header{"x-key": {"secret"}}
	c.ManifestURLEvery = 10 * time.Millisecond
}

func TestAPodOfTheURLRunsUntilTheURLGivesItNoMore(t *testing.T) {
	r, root, g := critest.Start(t), t.TempDir(), newGive(t)
	r.AddImage("img:1")
	g.answer(200, "a", "b")
	w := readWith(t, r, root, g.configure)
	w.run("default/a-n/c", "default/b-n/c")
	problem := func() string { return w.problems() }
	if a := w.store.Pods()[0].Annotations["kubernetes.io/config.source"]; a != "http" {
		t.Errorf("its source is %q", a)
	}
	g.answer(500)
	want := g.URL + "/pods?...: answers 500 Internal Server Error: see to the server; what it gave last counts until then"
	w.until("the 500 is told", func() bool { return problem() == want })
	w.run("default/a-n/c", "default/b-n/c")
	g.answer(200, "a")
	w.run("default/a-n/c")
	w.until("the problem is over", func() bool { return problem() == "" })
	w.stop()
	seesNoSecret(t, root, w)
	made := r.Count("CreateContainer")

	// As after a boot without network.
	if err := os.RemoveAll(filepath.Join(root, "pods")); err != nil {
		t.Fatal(err)
	}
	g.Close()
	w = readWith(t, r, root, g.configure)
	w.until("the network is away", func() bool { return strings.Contains(problem(), "cannot be reached") })
	w.run("default/a-n/c")
	if _, err := w.forget(t.Context(), "default", "a-n"); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.stop()
	if n := r.Count("CreateContainer") - made; n > 0 {
		t.Errorf("%d containers were made", n)
	}
}

// problems returns what is wrong with the manifests.
func (w *reader) problems() (words string) {
	for _, f := range w.store.Manifests().Files {
		for _, p := range f.Problems {
			words += p.Error()
		}
	}
	return words
}

// seesNoSecret looks through all that an agent that has ended wrote and shows.
func seesNoSecret(t *testing.T, root string, w *reader) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(root, "status", "*"))
	if len(files) < 3 {
		t.Errorf("only %v", files)
	}
	shown, err := json.Marshal(w.live.Load().Configz())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{"log": w.logged.String(), "configz": string(shown)}
	for _, file := range append(files, filepath.Join(root, "manifest-url")) {
		if b, err := os.ReadFile(file); err == nil {
			seen[file] = string(b)
		}
	}
	for where, text := range seen {
		if strings.Contains(text, "secret") || text == "" {
			t.Errorf("%s: %s", where, text)
		}
	}
}

// What is not signed, or older, changes nothing, also for the next agent.
func TestWithAPublicKeyOnlySignedManifestsCount(t *testing.T) {
	r, root := critest.Start(t), t.TempDir()
	r.AddImage("img:1")
	key, _, err := signature.NewKey()
	noErr(t, err)
	var content, file atomic.Pointer[string]
	var asked atomic.Int32 // for a signature
	give := func(serial int, pod string, isSigned bool) {
		text := fmt.Sprintf("kind: List\napiVersion: v1\nmetadata: {annotations: {monopod.serial: '%d'}}\nitems: []\n---\n", serial) + manifest(pod, "img:1", "terminationGracePeriodSeconds: 1")
		line := "none"
		if isSigned {
			line = string(signature.Sign(key, []byte(text)))
		}
		file.Store(&line)
		content.Store(&text)
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := content.Load()
		if strings.HasSuffix(r.URL.Path, ".sig") {
			text = file.Load()
			asked.Add(1)
		}
		io.WriteString(w, *text)
	}))
	defer site.Close()
	configure := func(c *config.Config) {
		c.ManifestURL, c.ManifestURLEvery = site.URL+"/{node}.yaml", 10*time.Millisecond
		c.ManifestURLPublicKey = signature.Text(key.Public().(ed25519.PublicKey))
	}
	give(7, "a", true)
	w := readWith(t, r, root, configure)
	w.run("default/a-n/c")
	give(8, "b", false)
	w.until("the missing signature is told", func() bool {
		return strings.Contains(w.problems(), site.URL+"/n.yaml: its signature n.yaml.sig is no line of base64")
	})
	w.run("default/a-n/c")
	w.stop()

	give(6, "b", true)
	asked.Store(0)
	w = readWith(t, r, root, configure)
	w.until("the older list is refused and asked for again", func() bool { return asked.Load() > 1 })
	w.run("default/a-n/c")
	give(8, "c", true)
	w.run("default/c-n/c")

	give(10, "No-Name", true) // it gives nothing that could be saved
	w.until("the wrong list is told", func() bool { return strings.Contains(w.problems(), "No-Name") })
	w.stop()
	give(9, "d", true)
	asked.Store(0)
	w = readWith(t, r, root, configure)
	w.until("the list before it is refused and asked for again", func() bool { return asked.Load() > 1 })
	w.run("default/c-n/c")
	w.stop()
}

// A box that is restored from a backup under another name refuses the list of the box that it was: it runs none
// of it under its own name, though the list was saved.
func TestARestoredBoxRefusesTheSignedListOfTheOther(t *testing.T) {
	r, root := critest.Start(t), t.TempDir()
	r.AddImage("img:1")
	key, _, err := signature.NewKey()
	noErr(t, err)
	text := "kind: List\napiVersion: v1\nmetadata: {annotations: {monopod.serial: '7', monopod.node: n}}\nitems: []\n---\n" + manifest("a", "img:1", "terminationGracePeriodSeconds: 1")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sig") {
			w.Write(signature.Sign(key, []byte(text)))
			return
		}
		io.WriteString(w, text)
	}))
	defer site.Close()
	configure := func(c *config.Config) {
		c.ManifestURL, c.ManifestURLEvery = site.URL+"/pods.yaml", 10*time.Millisecond
		c.ManifestURLPublicKey = signature.Text(key.Public().(ed25519.PublicKey))
	}
	w := readWith(t, r, root, configure)
	w.run("default/a-n/c")
	w.stop()

	w = readWith(t, r, root, func(c *config.Config) {
		configure(c)
		c.NodeName = "m"
	})
	w.until("the list is refused", func() bool {
		return strings.Contains(w.problems(), "is for another node than m, by monopod.node of its List")
	})
	w.run("default/a-n/c")
	w.stop()
	if n := r.Count("CreateContainer"); n != 1 {
		t.Errorf("%d containers were made", n)
	}
}

func TestSettingsOfTheURLAreChecked(t *testing.T) {
	for want, c := range map[string]config.Config{
		"no manifests given: say in which folder":                 {},
		"--manifest-url: not of the form http":                    {ManifestURL: "h/secret"},
		"manifestURLPublicKey: is not the base64 of a public key": {ManifestURL: "https://h", ManifestURLPublicKey: "secret"},
		"manifestURLCertFile and manifestURLPri":                  {ManifestURL: "https://h", ManifestURLCert: "/c"},
		"manifestURLTokenFile: the token would go to h:8 unencrypted, where others can read it: give an https:// URL with --manifest-url, or leave the token out": {
			ManifestURL: "HTTP://me:secret@h:8/secret", ManifestURLToken: "/t"},
		"": {ManifestURL: "https://h", ManifestURLToken: "/t", NodeName: "n"},
	} {
		_, err := settings.Complete(c, false)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !strings.HasPrefix(text, want) || (want == "") != (text == "") || strings.Contains(text, "secret") {
			t.Errorf("%q, want %q", text, want)
		}
	}
}
