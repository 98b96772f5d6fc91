package manifests

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/manifests/documents"
	"monopod/manifests/poduid"
)

const aURL = "https://me:pass@host/pods"

// asks makes a Source ask aURL.
func asks(c *SourceConfig) { c.URL = aURL }

// two is an answer of the pods a and b.
func two() Answer { return Answer{Data: []byte(podYAML("a") + "---\n" + podYAML("b"))} }

// gets gives the Source an answer, and checks what shall run at once.
func (p *looker) gets(a Answer, want string) {
	p.Helper()
	p.answered(a)
	p.step(p.now)
	if got := describeSnapshot(*p.last); got != want {
		p.Errorf("snapshot %q, want %q", got, want)
	}
}

func TestOnlyAGoodAnswerRemovesAPodOfTheURL(t *testing.T) {
	both := "a@pods=busybox b@pods=busybox"
	for name, r := range map[string]struct {
		answer Answer
		want   string
	}{
		"without it":              {Answer{Data: []byte(podYAML("a"))}, "a@pods=busybox"},
		"an empty list":           {Answer{Data: []byte("{apiVersion: v1, kind: PodList, items: []}")}, ""},
		"a list without it":       {Answer{Data: []byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i"}]}}]}`)}, "b@pods=i"},
		"the same again":          {Answer{}, both},
		"none":                    {Answer{Problem: "answers 500"}, both + " held:pods bad:pods"},
		"one without an end":      {Answer{Data: []byte(podYAML("a")), Unproven: true}, both},
		"no YAML":                 {Answer{Data: []byte("kind: [\n")}, both + " held:pods bad:pods ?"},
		"text":                    {Answer{Data: []byte("please log in")}, both + " held:pods bad:pods ?"},
		"comments alone":          {Answer{Data: []byte("# nothing\n")}, both + " held:pods bad:pods ?"},
		"another object":          {Answer{Data: []byte(`{"kind":"Status","apiVersion":"v1","code":403}`)}, both + " held:pods bad:pods ?"},
		"one pod of which is bad": {Answer{Data: []byte(podYAML("a") + "---\n" + podYAML("b", "foo: bar"))}, both + " held:pods bad:pods"},
		"one that hides it":       {Answer{Data: []byte(image(podYAML("a"), "nginx") + "---\nkind: [\n")}, "a@pods=nginx b@pods=busybox held:pods bad:pods ?"},
		"one cut between two":     {Answer{Data: []byte(podYAML("a") + "---\nkind: Po"), Unproven: true}, both + " held:pods bad:pods ?"},
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t, t.TempDir(), asks)
			p.gets(two(), both)
			p.gets(r.answer, r.want)
			p.expect(r.want)
			p.gets(Answer{Data: []byte(podYAML("a"))}, "a@pods=busybox")
		})
	}
}

// A pod of the URL is what a kubelet makes of it.
// A file of the folder that does not name what the URL gives no more, and was spoilt before, does
// not give it.
func TestASpoiltFileKeepsNoPodOfTheURLThatItDoesNotName(t *testing.T) {
	dir := t.TempDir()
	p := at(t, dir, asks)
	p.gets(Answer{Data: []byte(podYAML("db") + "---\n" + podYAML("web"))}, "db@pods=busybox web@pods=busybox")
	p.put("x.yaml", "kind: [")
	p.put("b.yaml", "metadata: {name: web")
	p.expect("db@pods=busybox web@pods=busybox bad:b.yaml bad:x.yaml ?")
	for _, f := range p.files { // an answer comes when it comes, whatever the time of the test
		f.since = f.since.Add(-time.Hour)
	}
	p.gets(Answer{Data: []byte("{apiVersion: v1, kind: PodList, items: []}")}, "web@b.yaml=busybox held:b.yaml bad:b.yaml bad:x.yaml ?")
}

func TestAPodOfTheURLHasItsIdentity(t *testing.T) {
	p := at(t, t.TempDir(), asks)
	p.gets(two(), "a@pods=busybox b@pods=busybox")
	pod := p.last.Pods[0]
	same := documents.Read("", two().Data, Options{NodeName: "other", URL: aURL}).Pods[0]
	file := documents.Read("/m/a.yaml", two().Data, node1).Pods[0]
	if pod.UID != same.UID || pod.UID == file.UID || !poduid.IsComputed(pod.UID) {
		t.Errorf("uid %s, of another node %s, of a file %s", pod.UID, same.UID, file.UID)
	}
	if pod.Annotations[documents.AnnotationSource] != "http" || len(pod.Spec.Tolerations) > 0 || pod.File != "https://host/pods" {
		t.Errorf("source %q, tolerations %v, file %s", pod.Annotations[documents.AnnotationSource], pod.Spec.Tolerations, pod.File)
	}
	if pod.Digest != file.Digest {
		t.Error("it is another pod than that of a file")
	}
}

// The last good content counts for the next agent, which has no answer.
func TestACachedAnswerStartsPodsAndRemovesNone(t *testing.T) {
	var kept *Answer
	p := at(t, t.TempDir(), func(c *SourceConfig) { asks(c); c.SaveAnswer = func(a Answer) error { kept = &a; return nil } })
	p.gets(two(), "a@pods=busybox b@pods=busybox")
	known := p.last.Pods
	p.gets(Answer{Data: []byte("please log in")}, "a@pods=busybox b@pods=busybox held:pods bad:pods ?")
	if kept == nil || string(kept.Data) != string(two().Data) {
		t.Fatalf("kept %v", kept)
	}
	*kept = Answer{Data: []byte(podYAML("b") + "---\n" + podYAML("d"))}
	cached := func(c *SourceConfig) { asks(c); c.Cached, c.Known = kept, known }
	p = at(t, t.TempDir(), cached)
	p.expect("a@pods=busybox b@pods=busybox d@pods=busybox")
	p.gets(Answer{Problem: "away"}, "a@pods=busybox b@pods=busybox d@pods=busybox held:pods bad:pods")
	if p.last.Pods[1] != known[1] {
		t.Error("b is another pod")
	}
	p.gets(Answer{}, "b@pods=busybox d@pods=busybox")
	p = at(t, t.TempDir(), func(c *SourceConfig) { asks(c); c.Known = known })
	p.gets(Answer{Problem: "away"}, "a@pods=busybox b@pods=busybox held:pods bad:pods ?")
	if !p.last.Read {
		t.Error("a dead URL keeps the agent from being ready")
	}
}

// What the URL said beside a pod of a file is known to the next agents, of whom the first got no answer:
// when it says that again, a pod whose file went meanwhile is not in it.
func TestWhatTheURLSaysAgainHidesNoPodThatWentMeanwhile(t *testing.T) {
	for _, row := range []struct{ name, answer, want string }{
		{"the same", "kind: [", "a@pods=busybox b@pods=busybox held:pods bad:pods ?"},
		{"something else", "kind: {", "a@pods=busybox b@pods=busybox c@pods=busybox held:pods bad:pods ?"},
	} {
		t.Run(row.name, func(t *testing.T) {
			kept := two()
			dir := t.TempDir()
			fill(t, dir, "c")
			p := at(t, dir, asks)
			p.gets(two(), "a@pods=busybox b@pods=busybox c@c.yaml=busybox")
			p.gets(Answer{Data: []byte("kind: [")}, "a@pods=busybox b@pods=busybox c@c.yaml=busybox held:pods bad:pods ?")
			for range 2 {
				p = p.next(func(c *SourceConfig) { asks(c); c.Cached = &kept })
			}
			must(t, os.Remove(filepath.Join(dir, "c.yaml")))
			p.full = true
			p.gets(Answer{Data: []byte(row.answer)}, "a@pods=busybox b@pods=busybox c@c.yaml=busybox held:pods bad:pods ?")
			p.expect(row.want)
		})
	}
}

// A pod that a file gave last is not replaced by an older version of the URL only because the agent
// starts again while the URL answers with something that cannot be read.
func TestACachedAnswerReplacesNoPodThatIsNewer(t *testing.T) {
	cached := Answer{Data: []byte(podYAML("a"))}
	p := at(t, t.TempDir(), asks)
	p.gets(cached, "a@pods=busybox")
	p.put("a.yaml", image(podYAML("a"), "nginx"))
	p.expect("a@a.yaml=nginx bad:pods")
	p.answered(Answer{Data: []byte("{{{ kind: [")})
	p.step(p.now)
	must(t, os.Remove(filepath.Join(p.dir, "a.yaml")))
	kept := "a@pods=nginx held:pods bad:pods ?"
	p.expect(kept)
	p = p.next(func(c *SourceConfig) { asks(c); c.Cached = &cached })
	p.expect("a@pods=nginx")
	p.gets(Answer{Data: []byte("{{{ kind: [")}, kept)
	p.gets(Answer{}, kept)
	p.gets(cached, "a@pods=busybox")
}

func TestTheFolderWinsOverTheURL(t *testing.T) {
	p := at(t, t.TempDir(), asks)
	p.gets(two(), "a@pods=busybox b@pods=busybox")
	uid := p.last.Pods[0].UID
	fill(t, p.dir, "a")
	must(t, os.WriteFile(filepath.Join(p.dir, "b.yaml"), []byte(image(podYAML("b"), "nginx")), 0o644))
	p.expect("a@a.yaml=busybox b@b.yaml=nginx bad:pods")
	if p.last.Pods[0].UID != uid {
		t.Error("the same pod was replaced")
	}
	want := filepath.Join(p.dir, "a.yaml") + " gives the pod default/a-node1 already: remove one of the two, or rename it"
	if f := p.last.Files[2]; len(f.Problems) != 2 || f.Problems[0].Message != want || f.Problems[0].File != "https://host/pods" || len(f.Pods) > 0 {
		t.Errorf("%+v", f)
	}
	must(t, os.Remove(filepath.Join(p.dir, "b.yaml")))
	p.expect("a@a.yaml=busybox b@pods=busybox bad:pods")
	must(t, os.RemoveAll(p.dir))
	p.expect("a@a.yaml=busybox b@pods=busybox bad:pods folder ?")
	p.gets(Answer{Data: []byte(podYAML("c"))}, "a@a.yaml=busybox c@pods=busybox folder ?")
}

// The folder's pods do not wait for the URL, whatever the last agent died of.
func TestADeadURLDelaysNoFile(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "f")
	p := at(t, dir, func(c *SourceConfig) { asks(c); c.Doubt = true })
	if p.last == nil || describeSnapshot(*p.last) != "f@f.yaml=busybox ?" || !p.last.Read {
		t.Fatalf("first snapshot %+v", p.last)
	}
	p.gets(Answer{Problem: "away"}, "f@f.yaml=busybox bad:pods ?")
	must(t, os.Remove(filepath.Join(dir, "f.yaml")))
	p.expect("bad:pods ?")
}

// A disk that is not mounted holds the pods of its files, and those alone.
func TestAFolderInDoubtDoesNotConcernTheURL(t *testing.T) {
	base, link := t.TempDir(), filepath.Join(t.TempDir(), "m")
	fill(t, base, "f")
	point(t, link, base)
	p := at(t, link, asks)
	p.gets(two(), "a@pods=busybox b@pods=busybox f@f.yaml=busybox")
	known := p.last.Pods[:2]
	point(t, link, elsewhere(t))
	p.expect("a@pods=busybox b@pods=busybox f@f.yaml=busybox folder ?")
	p.gets(Answer{Data: []byte(podYAML("a") + "---\n" + podYAML("f"))}, "a@pods=busybox f@f.yaml=busybox bad:pods folder ?")
	p.expect("a@pods=busybox f@f.yaml=busybox bad:pods folder ?")
	empty := t.TempDir()
	point(t, link, base)
	p.expect("a@pods=busybox f@f.yaml=busybox bad:pods")
	point(t, link, empty)
	p.expect("a@pods=busybox f@f.yaml=busybox bad:pods folder ?")
	p = at(t, elsewhere(t), func(c *SourceConfig) { asks(c); c.Known, c.Record = known, recordOf(t, base) })
	p.gets(Answer{Problem: "away"}, "a@pods=busybox b@pods=busybox held:pods bad:pods ?")
	if len(p.last.Problems) > 0 {
		t.Errorf("problems of the folder: %v", p.last.Problems)
	}
}

func TestAURLAloneGivesPods(t *testing.T) {
	p := at(t, "", asks)
	p.gets(two(), "a@pods=busybox b@pods=busybox")
	if p.last.Read != true || !p.last.Complete || p.kept.Folder != nil {
		t.Errorf("%+v, recorded %v", p.last, p.kept)
	}
	files := at(t, t.TempDir(), nil)
	fill(t, files.dir, "a", "f")
	files.expect("a@a.yaml=busybox f@f.yaml=busybox")
	p = at(t, "", func(c *SourceConfig) { asks(c); c.Known = files.last.Pods })
	p.gets(two(), "a@pods=busybox b@pods=busybox f@f.yaml=busybox folder ?")
	p.forgets("f", "")
	p.expect("a@pods=busybox b@pods=busybox")
}

// Another URL, or none, is no proof that pods are gone.
func TestPodsOutliveTheirURLsSetting(t *testing.T) {
	p := at(t, t.TempDir(), asks)
	p.gets(two(), "a@pods=busybox b@pods=busybox")
	known := p.last.Pods
	p = at(t, t.TempDir(), func(c *SourceConfig) { c.URL, c.Known = "http://other/x", known })
	p.expect("a@x=busybox b@x=busybox ?")
	p.gets(Answer{Problem: "away"}, "a@x=busybox b@x=busybox held:x bad:x ?")
	p.gets(Answer{Data: []byte(podYAML("b"))}, "b@x=busybox")
	if p.last.Pods[0].UID != known[1].UID {
		t.Error("the same pod was replaced")
	}
	p = at(t, t.TempDir(), func(c *SourceConfig) { c.Known = known })
	p.expect("a@pods=busybox b@pods=busybox held:pods bad:pods")
	p.forgets("a", "")
	p.forgets("b", "")
	p.expect("")
}

func TestAHeldPodOfTheURLIsForgotten(t *testing.T) {
	p := at(t, t.TempDir(), asks)
	p.gets(two(), "a@pods=busybox b@pods=busybox")
	p.forgets("a", "https://host/pods gives it: remove it there")
	p.gets(Answer{Problem: "away"}, "a@pods=busybox b@pods=busybox held:pods bad:pods")
	p.forgets("a", "")
	p.expect("b@pods=busybox held:pods bad:pods")
	cached := two()
	p = p.next(func(c *SourceConfig) { asks(c); c.Cached = &cached })
	p.expect("b@pods=busybox")
	p.gets(Answer{}, "a@pods=busybox b@pods=busybox") // it is given still
	if n := len(p.kept.Forgotten); n > 0 {
		t.Errorf("%d pods count as forgotten", n)
	}
	p.gets(Answer{Data: []byte(podYAML("b"))}, "b@pods=busybox")
}

// It is saved once the disk has room, though the server has nothing new to say by then.
func TestAnAnswerThatCannotBeSavedCountsAllTheSame(t *testing.T) {
	full, saved := errors.New("disk full"), 0
	p := at(t, t.TempDir(), func(c *SourceConfig) {
		asks(c)
		c.SaveAnswer = func(a Answer) error {
			if full == nil && string(a.Data) == string(two().Data) {
				saved++
			}
			return full
		}
	})
	const both = "a@pods=busybox b@pods=busybox"
	p.gets(two(), both)
	full = nil
	p.expect(both)
	p.expect(both)
	if saved != 1 {
		t.Errorf("saved %d times", saved)
	}
}

// The next agent must know that a body was verified, though another one saved it before that.
func TestABodyThatIsSignedNowIsSavedAgain(t *testing.T) {
	unsigned, saved := two(), []Answer{}
	p := at(t, t.TempDir(), func(c *SourceConfig) {
		asks(c)
		c.Cached, c.SaveAnswer = &unsigned, func(a Answer) error { saved = append(saved, a); return nil }
	})
	const both = "a@pods=busybox b@pods=busybox"
	signed := two()
	signed.Signer, signed.Serial = "key", 7
	p.gets(signed, both)
	p.gets(signed, both)
	if len(saved) != 1 || saved[0].Serial != 7 {
		t.Errorf("saved %+v", saved)
	}
	p = at(t, t.TempDir(), func(c *SourceConfig) {
		asks(c)
		c.Cached, c.SaveAnswer = &signed, func(Answer) error { t.Error("saved again"); return nil }
	})
	p.gets(signed, both)
}

func TestURLsAreNamedWithoutSecrets(t *testing.T) {
	for raw, want := range map[string]string{
		aURL:                         "https://host/pods",
		aURL + "?key=1234":           "https://host/pods?...",
		"HTTP://h:8080/a%2Fb?x#frag": "http://h:8080/a%2Fb?...",
		"http://h":                   "http://h",
		"http://h/\x7f?key=secret":   "the manifest URL",
	} {
		if got := URLName(raw); got != want {
			t.Errorf("%s is called %s, want %s", raw, got, want)
		}
	}
}

func TestAURLThatCannotBeRequestedIsRefused(t *testing.T) {
	const form = "not of the form"
	for raw, want := range map[string]string{
		"ftp://h/secret": form, "secret": form, "https://": form, "http://h:x/secret": form, "/m/secret": form,
		"http://{node}.secret/x":                "has {node} in its host",
		"http://me:{node}@h/secret":             "has {node} in its host",
		"http://{node}?secret":                  "has {node} in its host",
		"http://h/secret/{name}.yaml":           "has braces: {node} alone stands for something",
		"http://h/{{node}}/secret":              "has braces",
		"http://h/{NODE}?secret":                "has braces",
		"http://h/{node}/x?box={node}&key=a%7B": "", aURL: "", "": "", "HTTP://h": "",
	} {
		err := CheckURL(raw)
		if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

func TestTheNodesNameStandsInTheURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://h/{node}/pods.yaml?box={node}": "https://h/edge%2F7/pods.yaml?box=edge%2F7",
		"https://h/pods.yaml":                   "https://h/pods.yaml",
		"":                                      "",
	} {
		if got := NodeURL(raw, "edge/7"); got != want {
			t.Errorf("%s is requested as %s, want %s", raw, got, want)
		}
	}
}

// FuzzURLBody: whatever the URL answers, a pod goes only for an answer without error.
func FuzzURLBody(f *testing.F) {
	seedManifests(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		s := NewSource(SourceConfig{URL: aURL, Options: node1})
		s.answered(two())
		s.step(time.Now())
		before := s.last.Pods
		s.answered(Answer{Data: body})
		s.step(time.Now())
		if said := s.files[s.urlName]; !said.mayGive() {
			return
		}
		for _, p := range before {
			if s.last.find(p.Key()) == nil {
				t.Errorf("%s is gone", p.Key())
			}
		}
	})
}
