package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// damages are what may become of a file on a disk.
var damages = map[string]func(path string) error{
	"bits flipped": func(path string) error { return rewritten(path, flip) },
	"emptied":      func(path string) error { return os.Truncate(path, 0) },
	"half":         func(path string) error { return rewritten(path, func(b []byte) []byte { return b[:len(b)/2] }) },
	"a byte short": func(path string) error { return rewritten(path, func(b []byte) []byte { return b[:max(len(b)-2, 0)] }) },
	"zeros":        func(path string) error { return rewritten(path, func(b []byte) []byte { return make([]byte, len(b)) }) },
	"other JSON": func(path string) error {
		return rewritten(path, func([]byte) []byte {
			return []byte(`{"pod":[1],"metadata":3,"former":"x","stopped":[],"folder":7,"files":7,"url":[],"content":"x"}`)
		})
	},
	"a folder": func(path string) error {
		return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o755))
	},
	"a broken link":  func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/nowhere/at/all", path)) },
	"far too large":  func(path string) error { return os.Truncate(path, 1<<40) },
	"a letter other": func(path string) error { return rewritten(path, otherLetter) },
}

func rewritten(path string, as func([]byte) []byte) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, as(b), 0o600)
}

// flip flips bits all over a file, the same in each run.
func flip(b []byte) []byte {
	for k, r := 0, rand.New(rand.NewSource(7)); k < 1+len(b)/64 && len(b) > 0; k++ {
		b[r.Intn(len(b))] ^= 1 << r.Intn(8)
	}
	return b
}

// otherLetter leaves JSON valid: one bit of a name, an image or an id is another.
func otherLetter(b []byte) []byte {
	for _, word := range []string{"img:1", `"hostId":`, `"default/`, "Reads", `"sum":"`} {
		if at := strings.Index(string(b), word); at >= 0 {
			b[at+len(word)-1+strings.Count(word, `:`)*strings.Count(word, `"`)/2] ^= 1
			return b
		}
	}
	if len(b) > 1 {
		b[len(b)/3] ^= 1
	}
	return b
}

// everyState is all that an agent writes down, by patterns, in groups of which one file does
// not stand in for another.
var everyState = [][]string{
	{"pods/*/pod.json", "status/manifests.json", "status/node.json", "objects/configmap-*.json", "objects/secret-*.json", "images.json", "boot", "lock", "node-name.twin"},
	{"status/pods/*.json", "updates/*.json", "folder.json", "pods/*/userns.twin", "instance", "clean-end", "runtime"},
	{"holds.json", "pods/*/userns", "pods/*/etc-hosts", "status/events.jsonl", "status/runtime.json", "manifest-url", "instance.twin", "node-name"},
}

const damagedObjects = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {word: hush}
`

// newDamaged returns an agent that has ended and had pods, requests and updates of all kinds.
func newDamaged(t *testing.T) *keeper {
	k := newKeeper(t)
	k.AddImage("img:2")
	answers := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !answers {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, manifest("url", "img:1"))
	}))
	t.Cleanup(server.Close)
	k.cfg.ManifestURL = server.URL
	k.Program("job-n/c", critest.Exits(3))
	write := func(name, doc string) {
		noErr(t, os.WriteFile(filepath.Join(k.cfg.Manifests[0], name+".yaml"), []byte(doc), 0o644))
	}
	write("objects", damagedObjects)
	write("web", strings.Replace(manifest("web", "img:1", "volumes: [{name: d, emptyDir: {}}, {name: s, configMap: {name: settings}}]"), `"img:1"}`,
		`"img:1", env: [{name: WORD, valueFrom: {secretKeyRef: {name: password, key: word}}}], volumeMounts: [{name: d, mountPath: /d}]}`, 1))
	write("own", manifest("own", "img:1", "hostUsers: false"))
	write("job", manifest("job", "img:1", "restartPolicy: Never"))
	write("stopped", manifest("stopped", "img:1", "terminationGracePeriodSeconds: 1"))
	write("new", healthy("1h", manifest("new", "img:1", "terminationGracePeriodSeconds: 1")))
	k.start()
	for _, name := range []string{"web", "own", "stopped", "new", "url"} {
		k.until(name+" runs", k.ready("default/"+name+"-n"))
	}
	k.Exit("web-n/c", 1)
	k.until("it runs again", func() bool {
		p, ok := k.a.Store().Pod("default/web-n")
		return ok && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].RestartCount == 1 && k.ready("default/web-n")()
	})
	asks := k.a.sync.requests(k.a.cfg.NodeName)
	noErr(t, asks.Stop(t.Context(), podKey("stopped"), nil))
	noErr(t, asks.Hold(t.Context(), podKey("own"), url.Values{"reason": {"audit"}}))
	write("new", healthy("1h", manifest("new", "img:2", "terminationGracePeriodSeconds: 1", "hostname: other"))) // under another uid
	k.until("it is updated", func() bool {
		c, _ := k.Container("new-n/c")
		return c.Config != nil && c.Config.Image.UserSpecifiedImage == "img:2" && k.ready("default/new-n")()
	})
	k.until("one is stopped, one has ended", func() bool {
		_, runs := k.Container("stopped-n/c")
		p, ok := k.a.Store().Pod("default/job-n")
		return !runs && ok && p.Status.Phase == v1.PodFailed
	})
	k.stop()
	answers = false
	return k
}

var theRunning = []string{"default/new-n/c", "default/own-n/c", "default/url-n/c", "default/web-n/c"}

// settled waits until an agent has looked at everything, and checks that pods are as they were.
func (k *keeper) settled() {
	k.Helper()
	var got []string
	defer func() {
		if k.Failed() {
			k.Logf("%v run; the job is %s, the stopped one %s, of %d pods", got, k.phase("job"), k.phase("stopped"), len(k.a.Store().Pods()))
		}
	}()
	k.until("all are as they were", func() bool {
		got = k.Running()
		slices.Sort(got)
		return slices.Equal(got, theRunning) && k.phase("job") == v1.PodFailed && k.phase("stopped") != v1.PodRunning &&
			len(k.a.Store().Pods()) == 6
	})
}

// phase returns how a pod is reported, "" if it is not.
func (k *keeper) phase(name string) v1.PodPhase {
	p, ok := k.a.Store().Pod("default/" + name + "-n")
	if !ok {
		return ""
	}
	return p.Status.Phase
}

func (k *keeper) madeSoFar() int {
	return k.Count("RunPodSandbox") + k.Count("CreateContainer") + k.Count("StartContainer") + k.Count("StopContainer") + k.Count("RemovePodSandbox")
}

// Whatever becomes of the files that an agent wrote, the next one starts, no container is
// made or stopped, and each file is told of once.
func TestDamagedFilesCostNoContainer(t *testing.T) {
	k := newDamaged(t)
	whole := k.cfg.Root + ".whole"
	noErr(t, copyTree(k.cfg.Root, whole))
	known := map[string]bool{}
	for n, patterns := range everyState {
		var files []string
		for _, pattern := range patterns {
			found, _ := filepath.Glob(filepath.Join(whole, pattern))
			if len(found) == 0 {
				t.Errorf("the agent wrote no %s: it had %s", pattern, left(t, whole))
			}
			for _, path := range found {
				file, _ := filepath.Rel(whole, path)
				files, known[file] = append(files, file), true
			}
		}
		for name, damage := range damages {
			t.Run(fmt.Sprintf("%d is %s", n, name), func(t *testing.T) {
				noErr(t, errors.Join(os.RemoveAll(k.cfg.Root), copyTree(whole, k.cfg.Root)))
				for _, file := range files {
					if file == "lock" && (name == "a folder" || name == "a broken link") {
						continue // an agent refuses that, and says what to do
					}
					noErr(t, damage(filepath.Join(k.cfg.Root, file)))
				}
				k := &keeper{T: t, Runtime: k.Runtime, cfg: k.cfg, log: &lines{}}
				made := k.madeSoFar()
				k.start()
				k.settled()
				k.stop()
				if now := k.madeSoFar(); now != made {
					t.Errorf("%d calls changed containers", now-made)
				}
				for _, file := range files {
					k.tells(file, name)
				}
				k.log = &lines{}
				k.start()
				k.settled()
				k.stop()
				if now := k.madeSoFar(); now != made {
					t.Errorf("%d calls changed containers in the end", now-made)
				}
				if text := k.log.String(); strings.Contains(text, "damaged") {
					t.Errorf("it is told again:\n%s", text)
				}
			})
		}
	}
	for _, file := range left(t, whole) {
		if !known[file] && !strings.HasPrefix(file, "logs") && !ofContainers.MatchString(file) && !strings.HasSuffix(file, "/") {
			t.Errorf("the agent wrote %s, too", file)
		}
	}
}

var (
	// unread are files that an agent looks at once a pod needs them, or once the runtime answers.
	unread = regexp.MustCompile(`^pods/.*/(etc-hosts|userns.*)$|^status/runtime\.json$`)
	// ofContainers are files that containers write to, marks without content, and what is on its
	// way out.
	ofContainers = regexp.MustCompile(`^(pods/[^/]*/(volumes|containers|plugins)|trash)/`)
	// quiet are files that are written before they are read.
	quiet = regexp.MustCompile(`^(lock|clean-end)$`)
)

// tells checks that one line names the file, that nothing half readable is where it was,
// and that what was put aside is one file.
func (k *keeper) tells(file, damage string) {
	k.Helper()
	path := filepath.Join(k.cfg.Root, file)
	if unread.MatchString(file) {
		return
	}
	n := 0
	for line := range strings.Lines(k.log.String()) {
		if strings.Contains(line, path) && strings.Contains(line, "damaged") {
			n++
		}
	}
	unsealed := damage == "bits flipped" || damage == "a letter other" || damage == "a byte short" || damage == "emptied" && file == "status/events.jsonl" // which a report or a line of text may bear
	none := strings.HasPrefix(file, "status/pods/") && (damage == "emptied" || damage == "zeros")                                                          // as a power cut leaves a report
	reports := strings.HasPrefix(file, "status/") || file == "images.json" || file == "boot"
	switch {
	case quiet.MatchString(file):
	case n == 1:
	case n == 0 && (none || unsealed && reports):
	default:
		k.Errorf("%d lines tell of %s", n, file)
	}
	if told := k.events("StateFileDamaged", path); !reports && !quiet.MatchString(file) && told != n {
		k.Errorf("%d lines and %d events tell of %s", n, told, file)
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		k.Errorf("%s is still %s", path, info.Mode())
	} else if err == nil && info.Size() > 1<<30 {
		k.Errorf("%s is still that large", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.Error(err)
	}
	if all, _ := filepath.Glob(path + ".corrupt*"); len(all) > 1 {
		k.Errorf("beside it are %s", all)
	}
}
