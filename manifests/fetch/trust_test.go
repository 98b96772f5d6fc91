package fetch

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"monopod/manifests"
	"monopod/manifests/signature"
)

// list is content with these annotations of its List.
func list(annotations string) string {
	return "apiVersion: v1\nkind: List\nmetadata: {annotations: {" + annotations + "}}\nitems: []\n"
}

// signer returns a key, and a function that signs with it.
func signer(t *testing.T) (ed25519.PublicKey, func(content string) string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, func(content string) string { return string(signature.Sign(private, []byte(content))) }
}

// site is a server with files by path, which knows their ETags.
type site struct {
	files map[string]string
	asked []string
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, there := s.files[r.URL.Path]
	tag := fmt.Sprintf("%q", fmt.Sprint(len(text), text[max(0, len(text)-40):]))
	tag = strings.NewReplacer("\\n", "", " ", "").Replace(tag)
	switch {
	case !there:
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == tag:
		w.WriteHeader(http.StatusNotModified)
		s.asked = append(s.asked, r.URL.Path+" 304")
		return
	default:
		w.Header().Set("ETag", tag)
		io.WriteString(w, text)
	}
	s.asked = append(s.asked, r.URL.Path)
}

// has checks which requests came since the last call.
func (s *site) has(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(s.asked, " "); got != want {
		t.Errorf("asked for %q, want %q", got, want)
	}
	s.asked = nil
}

func TestOnlySignedContentCounts(t *testing.T) {
	key, sign := signer(t)
	_, signOther := signer(t)
	good := list("monopod.serial: 7")
	forNode := func(node string) string { return list("monopod.serial: 7, monopod.node: " + node) }
	for _, r := range []struct{ name, content, file, want string }{
		{"signed", good, sign(good), ""},
		{"for this node", forNode("edge7"), sign(forNode("edge7")), ""},
		{"unsigned", good, "", "its signature pods.yaml.sig is missing (404 Not Found): sign the content with `monopod sign`, and upload the signature beside it"},
		{"a signature without content", "", sign(good), "answers 404 Not Found: correct staticPodURL"},
		{"by another key", good, signOther(good), "its signature pods.yaml.sig is not of this content by the key of manifestURLPublicKey: sign the content with that key, and upload the signature before"},
		{"of other content", good + "#", sign(good), "its signature pods.yaml.sig is not of this content"},
		{"a web page as a signature", good, "<html>log in</html>", "its signature pods.yaml.sig is no line of base64"},
		{"without a serial", list(""), sign(list("")), "has no serial number: write the annotation monopod.serial"},
		{"a serial that is no number", list("monopod.serial: v7"), sign(list("monopod.serial: v7")), "line 3: monopod.serial must be a whole number from 1"},
		{"for another node", forNode("edge8"), sign(forNode("edge8")), "is for another node than edge7, by monopod.node of its List: correct staticPodURL, or what the server has there"},
		{"broken", "kind: [\n", sign("kind: [\n"), "line 1: its List cannot be read"},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := &site{files: map[string]string{"/pods.yaml": r.content, "/pods.yaml.sig": r.file}}
			for path, text := range s.files {
				if text == "" {
					delete(s.files, path)
				}
			}
			a := once(t, Settings{URL: server(t, s.ServeHTTP) + "/pods.yaml", PublicKey: key, Node: "edge7"})
			if r.want == "" && (string(a.Data) != r.content || a.Serial != 7 || a.Signer != signature.Text(key)) {
				t.Errorf("%+v", a)
			}
			if r.want != "" && (!strings.HasPrefix(a.Problem, r.want) || !strings.HasSuffix(a.Problem, "; what it gave last counts until then") || a.Data != nil) {
				t.Errorf("%q, %d bytes", a.Problem, len(a.Data))
			}
		})
	}
}

// What is no signature costs little, however much of it there is.
func TestAnEndlessSignatureIsGivenUp(t *testing.T) {
	key, _ := signer(t)
	var sent atomic.Int64
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/x" {
			io.WriteString(w, list("monopod.serial: 1"))
			return
		}
		for r.Context().Err() == nil && sent.Load() < 1<<30 {
			n, err := w.Write(make([]byte, 1<<20))
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	a := once(t, Settings{URL: url + "/x", PublicKey: key})
	if !strings.HasPrefix(a.Problem, "its signature x.sig has 1024 bytes or more, where a signature has 89") || sent.Load() > 64<<20 {
		t.Errorf("%q after %d bytes", a.Problem, sent.Load())
	}
}

// The signature of a body that has not changed is not requested, that of a new one once.
func TestContentAndSignatureAreAPair(t *testing.T) {
	key, sign := signer(t)
	one, two := list("monopod.serial: 1"), list("monopod.serial: 2")
	s := &site{files: map[string]string{"/x": one, "/x.sig": sign(one)}}
	f := New(Settings{URL: server(t, s.ServeHTTP) + "/x", PublicKey: key})
	defer f.client.CloseIdleConnections()
	gives := func(want string) {
		t.Helper()
		a, _ := f.poll(t.Context())
		if string(a.Data) != want && !strings.HasPrefix(a.Problem, "its signature x.sig "+want) {
			t.Errorf("%+v, want %q", a, want)
		}
	}
	gives(one)
	s.has(t, "/x /x.sig")
	gives("")
	s.has(t, "/x 304")
	s.files["/x.sig"] = sign(two) // uploaded first, as the docs say
	gives("")
	s.has(t, "/x 304")
	s.files["/x"] = two
	gives(two)
	s.has(t, "/x /x.sig")

	three := list("monopod.serial: 3")
	s.files["/x"] = three // the other order: what did not count is requested again in full
	gives("is not of this content")
	gives("is not of this content")
	s.has(t, "/x /x.sig /x /x.sig")
	s.files["/x.sig"] = sign(three)
	gives(three)
	gives("")
	s.has(t, "/x /x.sig /x 304")
}

func TestASerialNumberNeverGoesBack(t *testing.T) {
	key, sign := signer(t)
	otherKey, _ := signer(t)
	seven := list("monopod.serial: 7")
	saved := func(key ed25519.PublicKey) *manifests.Answer {
		return &manifests.Answer{Data: []byte(seven), ETag: `"v7"`, Signer: signature.Text(key), Serial: 7}
	}
	older := "is older than what came before: its monopod.serial is 6, after 7: sign what is to count with a higher one"
	for _, r := range []struct {
		name, content string
		known         *manifests.Answer
		want          string
	}{
		{"a higher one", list("monopod.serial: 8"), saved(key), ""},
		{"a lower one", list("monopod.serial: 6"), saved(key), older},
		{"the same with other content", seven + "# more\n", saved(key), "has changed, but not its monopod.serial, 7: sign it with a higher one"},
		{"a lower one after another key", list("monopod.serial: 6"), saved(otherKey), ""},
		{"a lower one after one that is not signed", list("monopod.serial: 6"), &manifests.Answer{Data: []byte(seven)}, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := &site{files: map[string]string{"/x": r.content, "/x.sig": sign(r.content)}}
			a := once(t, Settings{URL: server(t, s.ServeHTTP) + "/x", PublicKey: key, Known: r.known})
			if r.want == "" && string(a.Data) != r.content || !strings.HasPrefix(a.Problem, r.want) {
				t.Errorf("%+v", a)
			}
		})
	}
	t.Run("while the agent runs", func(t *testing.T) {
		s := &site{files: map[string]string{"/x": seven, "/x.sig": sign(seven)}}
		f := New(Settings{URL: server(t, s.ServeHTTP) + "/x", PublicKey: key})
		defer f.client.CloseIdleConnections()
		f.poll(t.Context())
		replayed := list("monopod.serial: 6")
		s.files["/x"], s.files["/x.sig"] = replayed, sign(replayed)
		if a, _ := f.poll(t.Context()); !strings.HasPrefix(a.Problem, older) {
			t.Errorf("%+v", a)
		}
	})
}

// What counted last is known to the next agent though that has an earlier content, or none: the later one
// gave no pod, or the disk did not take it.
func TestTheSerialNumberOutlivesItsContent(t *testing.T) {
	key, sign := signer(t)
	of := func(serial int) string { return list(fmt.Sprintf("monopod.serial: %d", serial)) }
	s := &site{files: map[string]string{}}
	serve := func(content string) { s.files["/x"], s.files["/x.sig"] = content, sign(content) }
	serve(of(6))
	var saved *manifests.Serial
	set := Settings{URL: server(t, s.ServeHTTP) + "/x", PublicKey: key, Node: "edge7", SaveSerial: func(n manifests.Serial) error { saved = &n; return nil }}
	six := once(t, set)
	serve(of(7))
	once(t, set)
	older := "is older than what came before: its monopod.serial is 6, after 7"
	for _, r := range []struct {
		name, node, content string
		known               *manifests.Answer
		want                string
	}{
		{"the earlier content, which is saved", "edge7", of(6), &six, older},
		{"the earlier content, and nothing is saved", "edge7", of(6), nil, older},
		{"the same content", "edge7", of(7), &six, ""},
		{"the same number of other content", "edge7", of(7) + "# more\n", &six, "has changed, but not its monopod.serial, 7"},
		{"a later one", "edge7", of(8), &six, ""},
		{"a copy of the root dir, by a list for any node", "edge8", of(6), nil, older},
	} {
		t.Run(r.name, func(t *testing.T) {
			serve(r.content)
			next := Settings{URL: set.URL, PublicKey: key, Node: r.node, Known: r.known, Serial: saved}
			a := once(t, next)
			if r.want == "" && string(a.Data) != r.content || !strings.HasPrefix(a.Problem, r.want) {
				t.Errorf("%+v", a)
			}
		})
	}
	t.Run("a copy of the root dir, by a list for one node", func(t *testing.T) {
		serve(of(6))
		of7 := *saved
		of7.Node = "edge7"
		if a := once(t, Settings{URL: set.URL, PublicKey: key, Node: "edge8", Serial: &of7}); a.Problem != "" {
			t.Errorf("%+v", a)
		}
	})
}

// A serial number that the disk does not take is saved once it does, though nothing new comes. One that
// an older agent kept with its content alone is saved, too.
func TestASerialNumberIsSavedOnceTheDiskTakesIt(t *testing.T) {
	key, sign := signer(t)
	seven := list("monopod.serial: 7")
	full, saved := error(syscall.ENOSPC), int64(0)
	s := &site{files: map[string]string{"/x": seven, "/x.sig": sign(seven)}}
	set := Settings{URL: server(t, s.ServeHTTP) + "/x", PublicKey: key, SaveSerial: func(n manifests.Serial) error {
		if full == nil {
			saved = n.Number
		}
		return full
	}}
	f := New(set)
	defer f.client.CloseIdleConnections()
	a, _ := f.poll(t.Context())
	if string(a.Data) != seven {
		t.Fatalf("%+v does not count", a)
	}
	full = nil
	f.poll(t.Context())
	if saved != 7 {
		t.Errorf("saved %d", saved)
	}
	saved = 0
	set.Known = &a
	once(t, set)
	if saved != 7 {
		t.Errorf("of an older agent's content saved %d", saved)
	}
}

// Content that was saved without a signature, or with that of another key, is verified, though it
// has not changed.
func TestSavedContentIsVerifiedWithANewKey(t *testing.T) {
	key, sign := signer(t)
	content := list("monopod.serial: 7")
	for name, r := range map[string]struct {
		signer, want string
	}{
		"no key before":    {"", "/x /x.sig"},
		"another key":      {"MCow", "/x /x.sig"},
		"the same key":     {signature.Text(key), "/x 304"},
		"no key any more ": {signature.Text(key), "/x 304"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{files: map[string]string{"/x": content, "/x.sig": sign(content)}}
			url := server(t, s.ServeHTTP) + "/x"
			known := once(t, Settings{URL: url})
			known.Signer, known.Serial = r.signer, 7
			s.asked = nil
			set := Settings{URL: url, PublicKey: key, Known: &known}
			if strings.HasPrefix(name, "no key any more") {
				set.PublicKey = nil
			}
			if a := once(t, set); a.Problem != "" {
				t.Errorf("%+v", a)
			}
			s.has(t, r.want)
		})
	}
}

// A list for one node is refused by another, also where it was saved under the former name of the node.
// Its number is of no list of this node's.
func TestASavedListForAnotherNodeIsRefused(t *testing.T) {
	key, sign := signer(t)
	of := func(serial int, node string) string {
		return list(fmt.Sprintf("monopod.serial: %d, monopod.node: %s", serial, node))
	}
	for _, r := range []struct{ name, saved, now, want, asks string }{
		{"that is there still", of(7, "edge6"), of(7, "edge6"), "is for another node than edge7", "/x /x.sig"},
		{"with one of this node in its place", of(7, "edge6"), of(3, "edge7"), "", "/x /x.sig"},
		{"one for this node", of(7, "edge7"), of(7, "edge7"), "", "/x 304"},
		{"one for any node", list("monopod.serial: 7"), list("monopod.serial: 7"), "", "/x 304"},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := &site{files: map[string]string{"/x": r.saved, "/x.sig": sign(r.saved)}}
			url := server(t, s.ServeHTTP) + "/x"
			known := once(t, Settings{URL: url})
			known.Signer, known.Serial = signature.Text(key), 7
			s.files["/x"], s.files["/x.sig"], s.asked = r.now, sign(r.now), nil
			a := once(t, Settings{URL: url, PublicKey: key, Node: "edge7", Known: &known})
			if (a.Problem == "") != (r.want == "") || !strings.HasPrefix(a.Problem, r.want) {
				t.Errorf("%+v", a)
			}
			s.has(t, r.asks)
		})
	}
}

// A signature is one of the whole content, whatever the server says of its length.
func TestSignedContentIsWhole(t *testing.T) {
	key, sign := signer(t)
	content := list("monopod.serial: 1")
	a := once(t, Settings{PublicKey: key, URL: server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/x" {
			raw("HTTP/1.1 200 OK\r\n\r\n"+content)(w, r)
			return
		}
		io.WriteString(w, sign(content))
	}) + "/x"})
	if string(a.Data) != content || a.Unproven {
		t.Errorf("%+v", a)
	}
}

// The signature may be on another host, which gets no headers and no token.
func TestARedirectOfTheSignatureGetsNoSecrets(t *testing.T) {
	key, sign := signer(t)
	content := list("monopod.serial: 1")
	elsewhere := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "" || r.Header.Get("Authorization") != "" {
			t.Errorf("got %v", r.Header)
		}
		io.WriteString(w, sign(content))
	})
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Key") != "secret":
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, ".sig"):
			http.Redirect(w, r, elsewhere+"/y", http.StatusFound)
		default:
			io.WriteString(w, content)
		}
	})
	a := once(t, Settings{URL: url + "/x", PublicKey: key, Headers: map[string][]string{"X-Key": {"secret"}, "Authorization": {"secret"}}})
	if string(a.Data) != content {
		t.Errorf("%+v", a)
	}
}

func TestTheSignatureIsBesideTheContent(t *testing.T) {
	for raw, want := range map[string]string{
		"https://h/a/pods.yaml":           "https://h/a/pods.yaml.sig pods.yaml.sig",
		"https://me:pw@h/a%2Fb?key=x#top": "https://me:pw@h/a%2Fb.sig?key=x#top b.sig",
		"http://h":                        "http://h/.sig .sig",
		"http://h?box=7":                  "http://h/.sig?box=7 .sig",
	} {
		if where, name := signatureURL(raw); where+" "+name != want {
			t.Errorf("%s: %s %s, want %s", raw, where, name, want)
		}
	}
}

// While both are uploaded they are of two versions: that is tried again, and is a problem
// only once it lasts.
func TestAnUploadIsNoProblemBeforeItLasts(t *testing.T) {
	key, sign := signer(t)
	zero, one, two := list("monopod.serial: 1"), list("monopod.serial: 2"), list("monopod.serial: 3")
	for _, r := range []struct{ name, content, file, want string }{
		{"the content first", two, sign(one), "its signature x.sig is not of this content"},
		{"a server that has an older version", zero, sign(zero), "is older than what came before: its monopod.serial is 1, after 2"},
	} {
		t.Run(r.name, func(t *testing.T) {
			w := &world{body: one, signature: sign(one)}
			bubbleOf(t, w, w, Settings{URL: "http://h/x", PublicKey: key}, func() {
				w.later(time.Second, func() {
					if len(w.answers) != 1 || w.answers[0].Serial != 2 {
						t.Errorf("told %+v", w.answers)
					}
					w.body, w.signature, w.at = r.content, r.file, nil
				})
				w.later(uploadTime-time.Second, func() {
					if len(w.answers) != 1 || len(w.at) < 2 {
						t.Errorf("told %+v, asked %d times", w.answers[1:], len(w.at))
					}
				})
				w.later(2*uploadTime, func() {
					if len(w.answers) != 2 || !strings.HasPrefix(w.answers[1].Problem, r.want) {
						t.Errorf("told %+v", w.answers[1:])
					}
					w.body, w.signature = two, sign(two)
				})
				w.later(2*lastRetry, func() {
					if len(w.answers) != 3 || w.answers[2].Serial != 3 || w.answers[2].Problem != "" {
						t.Errorf("told %+v", w.answers[2:])
					}
				})
			})
		})
	}
}

// A server that refuses the signature of what it gives, or does not answer, is left alone as one that
// refuses the content; one that lacks the signature is asked as often as usual.
func TestAServerThatRefusesTheSignatureIsLeftAlone(t *testing.T) {
	key, sign := signer(t)
	one, two := list("monopod.serial: 1"), list("monopod.serial: 2")
	later := []time.Duration{every, 2 * every, 4 * every, lastRetry, lastRetry}
	for _, r := range []struct {
		name, after string
		refuse      func(w http.ResponseWriter)
		waits       []time.Duration // each up to every longer
	}{
		{"for a time", "600", status503, []time.Duration{600 * time.Second, 600 * time.Second}},
		{"for no time", "", status503, later},
		{"without an answer", "", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, later},
		{"as there is none", "600", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, []time.Duration{every, every, every}},
	} {
		t.Run(r.name, func(t *testing.T) {
			w := &world{body: one, signature: sign(one)}
			refused := false
			h := http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
				w.mu.Lock()
				refuses := refused && strings.HasSuffix(req.URL.Path, signature.Suffix)
				w.mu.Unlock()
				if refuses {
					out.Header().Set("Retry-After", r.after)
					r.refuse(out)
					return
				}
				w.ServeHTTP(out, req)
			})
			bubbleOf(t, w, h, Settings{URL: "http://h/x", PublicKey: key, Every: every}, func() {
				w.later(time.Second, func() { w.body, refused = two, true })
				w.later(time.Hour, func() {
					for k, want := range r.waits { // the first is after the answer
						if wait := w.at[k+2].Sub(w.at[k+1]); wait < want*9/10 || wait > want+every {
							t.Errorf("wait %d is %v, want about %v", k, wait, want)
						}
					}
				})
			})
		})
	}
}

func status503(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }
