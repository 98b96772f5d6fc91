package layers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"monopod/manifests"
)

// stack is a vendor's folder, and an admin's above it, with the Layers that read them.
type stack struct {
	*testing.T
	home    string
	dirs    []string
	record  manifests.Record
	objects []*manifests.Object
	settle  time.Duration // 0: the default
	url     string        // "": none
	answers chan manifests.Answer
	cached  *manifests.Answer // the last one that was saved
	layers  *Layers
	last    manifests.Snapshot
	all     []manifests.Snapshot // of this agent
	quit    func()

	mu  sync.Mutex
	got []manifests.Snapshot // that were not collected yet
}

// layered runs a test with both folders, which have these files.
func layered(t *testing.T, files map[string]string, test func(*stack)) {
	t.Helper()
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &stack{T: t, home: home, answers: make(chan manifests.Answer), dirs: []string{filepath.Join(home, "usr"), filepath.Join(home, "etc")}}
		for _, dir := range s.dirs {
			must(t, os.Mkdir(dir, 0o755))
		}
		for name, text := range files {
			s.write(name, text)
		}
		s.start()
		test(s)
		s.quit()
	})
}

func (s *stack) path(name string) string { return filepath.Join(s.home, name) }

func (s *stack) write(name, text string) {
	s.Helper()
	must(s.T, os.WriteFile(s.path(".new"), []byte(text), 0o600))
	must(s.T, os.Rename(s.path(".new"), s.path(name)))
}

func (s *stack) remove(name string) {
	s.Helper()
	must(s.T, os.Remove(s.path(name)))
}

// away moves a folder away, and back.
func (s *stack) away(dir string) { must(s.T, os.Rename(s.path(dir), s.path(dir+".away"))) }
func (s *stack) back(dir string) { must(s.T, os.Rename(s.path(dir+".away"), s.path(dir))) }

// start starts an agent's Layers, which know what the last ones saved, and what runs.
func (s *stack) start() {
	s.layers = New(s.dirs, manifests.SourceConfig{Options: manifests.Options{NodeName: "n"}, Unwatched: true, Settle: s.settle, Known: s.last.Pods, Record: s.record, KnownObjects: s.objects,
		URL: s.url, Answers: s.answers, Cached: s.cached, SaveAnswer: func(a manifests.Answer) error { s.cached = &a; return nil },
		Save:        func(r manifests.Record) error { s.record = r; return nil },
		SaveObjects: func(all []*manifests.Object) error { s.objects = all; return nil }})
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	s.all, s.got = nil, nil
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case one := <-s.layers.Snapshots():
				s.mu.Lock()
				s.got = append(s.got, one)
				s.mu.Unlock()
			}
		}
	}()
	ended := make(chan struct{})
	go func() { s.layers.Run(ctx); close(ended) }()
	s.quit = func() { cancel(); <-done; <-ended }
}

// collect takes the snapshots that have come.
func (s *stack) collect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.got = append(s.all, s.got...), nil
	if n := len(s.all); n > 0 {
		s.last = s.all[n-1]
	}
}

func (s *stack) restart() { s.quit(); s.start() }

// said is the pods, each with its file and image, and the objects.
func (s *stack) said() string {
	var words []string
	for _, p := range s.last.Pods {
		words = append(words, p.Name+"="+p.Spec.Containers[0].Image+"@"+s.short(p.File))
	}
	for _, o := range s.last.Objects {
		words = append(words, o.ConfigMap.Name+"@"+s.short(o.File))
	}
	return strings.Join(words, " ")
}

// short returns the path of a file in the folders, and a URL as it is.
func (s *stack) short(file string) string { return strings.TrimPrefix(file, s.home+"/") }

// expect looks again and again, until all that is gone must be known to be.
func (s *stack) expect(want string) {
	s.Helper()
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	s.collect()
	if got := s.said(); got != want {
		s.Errorf("desired is %q, want %q", got, want)
	}
}

// never fails if a snapshot of this agent had such a pod.
func (s *stack) never(image string) {
	s.Helper()
	for _, one := range s.all {
		if slices.ContainsFunc(one.Pods, func(p *manifests.Pod) bool { return p.Spec.Containers[0].Image == image }) {
			s.Errorf("a snapshot had %s", image)
		}
	}
}

// file returns the report of a file.
func (s *stack) file(name string) *manifests.File {
	if f := s.last.File(s.path(name)); f != nil {
		return f
	}
	return &manifests.File{}
}

func pod(name, image string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: %s}]}\n", name, image)
}

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: %s}\n", name, value)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheHigherFolderWinsByTheNameOfThePod(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor"), "usr/db.yaml": pod("db", "vendor"), "etc/mine.yaml": pod("web", "admin")}, func(s *stack) {
		s.expect("db=vendor@usr/db.yaml web=admin@etc/mine.yaml")
		if f := s.file("usr/web.yaml"); len(f.Pods)+len(f.Problems) > 0 || len(f.Hashes) != 1 {
			t.Errorf("the overridden file is reported with %v, %v, %v", f.Pods, f.Problems, f.Hashes)
		}
		s.write("usr/web.yaml", pod("web", "vendor2"))
		s.expect("db=vendor@usr/db.yaml web=admin@etc/mine.yaml")
		s.remove("etc/mine.yaml")
		s.expect("db=vendor@usr/db.yaml web=vendor2@usr/web.yaml")
		s.write("etc/web.yaml", pod("web", "admin2"))
		s.expect("db=vendor@usr/db.yaml web=admin2@etc/web.yaml")
		s.remove("etc/web.yaml")
		s.remove("usr/web.yaml")
		s.expect("db=vendor@usr/db.yaml")
	})
}

// A pod that goes from one folder to another with the same content stays the pod that runs.
func TestAPodKeepsItsUIDInAnotherFolder(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "one")}, func(s *stack) {
		s.expect("web=one@usr/web.yaml")
		uid := s.last.Pods[0].UID
		for _, to := range []string{"etc", "usr"} {
			s.write(to+"/web.yaml", pod("web", "one"))
			if to == "usr" {
				s.remove("etc/web.yaml")
			}
			s.expect("web=one@" + to + "/web.yaml")
			if got := s.last.Pods[0].UID; got != uid {
				t.Errorf("in %s the pod has the uid %s, want %s", to, got, uid)
			}
			if hash := s.file(to + "/web.yaml").Hashes["default/web"]; string(hash) != string(uid) {
				t.Errorf("in %s the file has the hash %s of a pod that is %s", to, hash, uid)
			}
		}
		s.write("etc/web.yaml", pod("web", "one"))
		s.expect("web=one@etc/web.yaml")
		s.restart()
		s.expect("web=one@etc/web.yaml")
		if got := s.last.Pods[0].UID; got != uid {
			t.Errorf("the next agent gives the pod the uid %s, want %s", got, uid)
		}
	})
}

// The last good version of a pod names the file that gave it first. That another folder gives it
// since is known after a restart, too.
func TestTheFolderThatGaveAPodLastProvesItGone(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "one")}, func(s *stack) {
		s.expect("web=one@usr/web.yaml")
		accepted := s.last.Pods
		s.write("etc/web.yaml", pod("web", "one"))
		s.expect("web=one@etc/web.yaml")
		s.remove("usr/web.yaml")
		s.expect("web=one@etc/web.yaml")
		s.away("etc")
		s.last.Pods = accepted
		s.restart()
		s.expect("web=one@etc/web.yaml")
	})
}

func TestObjectsAreLayeredToo(t *testing.T) {
	layered(t, map[string]string{"usr/app.yaml": configMap("app", "vendor"), "etc/app.yaml": configMap("app", "admin")}, func(s *stack) {
		s.expect("app@etc/app.yaml")
		if len(s.objects) != 1 || s.objects[0].ConfigMap.Data["k"] != "admin" {
			t.Errorf("saved are %v", s.objects)
		}
		s.away("etc")
		s.restart()
		s.expect("app@etc/app.yaml")
		s.back("etc")
		s.remove("etc/app.yaml")
		s.expect("app@usr/app.yaml")
	})
}

// An admin overrides what a vendor made immutable; within a folder it stays as it is.
func TestAHigherFolderWinsOverAnImmutableObject(t *testing.T) {
	const immutable = "immutable: true\n"
	layered(t, map[string]string{"usr/app.yaml": configMap("app", "vendor") + immutable}, func(s *stack) {
		has := func(want string) {
			t.Helper()
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			s.collect()
			if len(s.last.Objects) != 1 || s.last.Objects[0].ConfigMap.Data["k"] != want {
				t.Errorf("desired is %v, want %s", s.last.Objects, want)
			}
		}
		has("vendor")
		s.write("usr/app.yaml", configMap("app", "vendor2")+immutable)
		has("vendor")
		s.write("etc/app.yaml", configMap("app", "admin")+immutable)
		has("admin")
		s.remove("etc/app.yaml")
		has("vendor")
		s.write("etc/app.yaml", configMap("app", "admin2"))
		has("admin2")
		s.restart()
		has("admin2")
	})
}

// While a folder is away its pods run on, those of the other follow their files, and nothing of
// the lower one takes the place of what the higher one gave: before and after a restart.
func TestEachFolderIsProvenByItself(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor"), "usr/db.yaml": pod("db", "vendor"), "etc/web.yaml": pod("web", "admin"), "etc/own.yaml": pod("own", "admin")}, func(s *stack) {
			s.expect("db=vendor@usr/db.yaml own=admin@etc/own.yaml web=admin@etc/web.yaml")
			s.away("etc")
			if restarts {
				s.restart()
			}
			s.write("usr/web.yaml", pod("web", "vendor2"))
			s.write("usr/new.yaml", pod("new", "vendor"))
			s.remove("usr/db.yaml")
			s.expect("new=vendor@usr/new.yaml own=admin@etc/own.yaml web=admin@etc/web.yaml")
			s.never("vendor2")
			s.back("etc")
			s.away("usr")
			if restarts {
				s.restart()
			}
			s.remove("etc/own.yaml")
			s.expect("new=vendor@usr/new.yaml web=admin@etc/web.yaml")
			s.remove("etc/web.yaml")
			s.back("usr")
			s.expect("new=vendor@usr/new.yaml web=vendor2@usr/web.yaml")
		})
	}
}

// A version that the higher folder gave and that never ran is not known to the next agent. What the
// lower one gives of that name waits all the same, until the owner gives the higher one up.
func TestWhatAHigherFolderGaveWaitsForIt(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor"), "etc/web.yaml": pod("web", "admin")}, func(s *stack) {
		s.expect("web=admin@etc/web.yaml")
		s.away("etc")
		s.last.Pods = nil
		s.restart()
		s.expect("")
		s.never("vendor")
		if f := s.file("usr/web.yaml"); len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "monopod forget web") {
			t.Errorf("the file that waits says %v", f.Problems)
		}
		must(t, s.layers.Forget(s.Context(), manifests.Key{Namespace: "default", Name: "web"}))
		s.expect("web=vendor@usr/web.yaml")
		s.back("etc")
		s.expect("web=admin@etc/web.yaml")
	})
}

// A pod of the higher folder that is removed while the lower one, which gives it too, was not read
// is not gone.
func TestARemovedOverrideWaitsForTheLowerFolder(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor"), "etc/web.yaml": pod("web", "admin")}, func(s *stack) {
		s.expect("web=admin@etc/web.yaml")
		s.away("usr")
		s.restart()
		s.remove("etc/web.yaml")
		s.expect("web=admin@etc/web.yaml")
		s.write("etc/own.yaml", pod("own", "admin"))
		s.expect("own=admin@etc/own.yaml web=admin@etc/web.yaml")
		s.back("usr")
		s.expect("own=admin@etc/own.yaml web=vendor@usr/web.yaml")
	})
}

// A file that gave a pod and now masks the one below that gives it, too, removes it: what is below
// does not run even for a moment.
func TestAMaskInPlaceOfAPodStartsNothingBelow(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor"), "etc/web.yaml": pod("web", "admin")}, func(s *stack) {
		s.expect("web=admin@etc/web.yaml")
		s.remove("etc/web.yaml")
		must(t, os.Symlink("/dev/null", s.path("etc/web.yaml")))
		s.expect("")
		s.never("vendor")
	})
}

func TestForgetAsksTheFolderThatKeepsThePod(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor"), "etc/web.yaml": pod("web", "admin"), "etc/own.yaml": pod("own", "admin")}, func(s *stack) {
		s.expect("own=admin@etc/own.yaml web=admin@etc/web.yaml")
		key := func(name string) manifests.Key { return manifests.Key{Namespace: "default", Name: name} }
		wanted := (*manifests.WantedError)(nil)
		if err := s.layers.Forget(s.Context(), key("web")); !errors.As(err, &wanted) || wanted.File != s.path("etc/web.yaml") {
			t.Errorf("a pod of a file is forgotten: %v", err)
		}
		if err := s.layers.Forget(s.Context(), key("none")); !errors.Is(err, manifests.ErrUnknown) {
			t.Errorf("a pod that nothing gives: %v", err)
		}
		s.away("etc")
		s.expect("own=admin@etc/own.yaml web=admin@etc/web.yaml")
		for _, name := range []string{"own", "web"} {
			must(t, s.layers.Forget(s.Context(), key(name)))
		}
		s.expect("web=vendor@usr/web.yaml")
		s.restart()
		s.expect("web=vendor@usr/web.yaml")
	})
}

// An empty file, or a link to /dev/null, masks the file of its name, what pods it gives or not.
func TestAnEmptyFileMasksTheOneOfItsName(t *testing.T) {
	for _, mask := range []func(s *stack){
		func(s *stack) { s.write("etc/web.yaml", "") },
		func(s *stack) { must(s.T, os.Symlink("/dev/null", s.path("etc/web.yaml"))) },
	} {
		layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor") + "---\n" + pod("other", "vendor"), "usr/db.yaml": pod("db", "vendor")}, func(s *stack) {
			s.expect("db=vendor@usr/db.yaml other=vendor@usr/web.yaml web=vendor@usr/web.yaml")
			mask(s)
			s.expect("db=vendor@usr/db.yaml")
			if f := s.file("usr/web.yaml"); f.MaskedBy != s.path("etc/web.yaml") {
				t.Errorf("the file is masked by %q", f.MaskedBy)
			}
			if f := s.file("etc/web.yaml"); len(f.Problems) > 0 || f.SHA256 == "" {
				t.Errorf("the mask is reported with %v", f.Problems)
			}
			s.restart()
			s.expect("db=vendor@usr/db.yaml")
			s.away("etc")
			s.write("usr/web.yaml", pod("web", "vendor2"))
			s.expect("db=vendor@usr/db.yaml")
			s.restart()
			s.expect("db=vendor@usr/db.yaml")
			s.never("vendor2")
			s.back("etc")
			s.remove("etc/web.yaml")
			s.expect("db=vendor@usr/db.yaml web=vendor2@usr/web.yaml")
		})
	}
}

// A mask that comes or goes for less than the settle time neither stops nor starts anything.
func TestAMaskTakesTheProofOfARemoval(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor")}, func(s *stack) {
		s.quit()
		s.settle = time.Minute
		s.start()
		s.expect("web=vendor@usr/web.yaml")
		s.write("etc/web.yaml", "")
		time.Sleep(30 * time.Second)
		s.remove("etc/web.yaml")
		s.expect("web=vendor@usr/web.yaml")
		if n := len(s.all); n > 3 || slices.ContainsFunc(s.all, func(one manifests.Snapshot) bool { return len(one.Pods) == 0 }) {
			t.Errorf("in %d snapshots the pod was gone", n)
		}
		s.write("etc/web.yaml", "")
		s.expect("")
		s.all = nil
		s.remove("etc/web.yaml")
		time.Sleep(30 * time.Second)
		s.write("etc/web.yaml", "")
		s.expect("")
		s.never("vendor")
	})
}

// The very first agent does not start what is masked.
func TestWhatIsMaskedFromTheStartNeverRuns(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor"), "etc/web.yaml": "", "usr/bad.yaml": "kind: [", "etc/bad.yaml": ""}, func(s *stack) {
		s.expect("")
		s.never("vendor")
		if f := s.file("usr/bad.yaml"); len(f.Problems) > 0 || !s.last.Complete {
			t.Errorf("a masked file is read: %v, complete %v", f.Problems, s.last.Complete)
		}
	})
}

// A folder that only masks, and is made again and empty, may not be there yet: what it masks does not
// start. Once it holds a manifest it is the new one.
func TestAFolderThatOnlyMasksIsProvenToo(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor"), "usr/db.yaml": pod("db", "vendor"), "etc/web.yaml": ""}, func(s *stack) {
		s.expect("db=vendor@usr/db.yaml")
		s.away("etc")
		must(t, os.Mkdir(s.path("etc"), 0o755))
		s.expect("db=vendor@usr/db.yaml")
		if said := fmt.Sprint(s.last.Problems); !strings.Contains(said, "is another folder than before") {
			t.Errorf("said is %s", said)
		}
		s.restart()
		s.expect("db=vendor@usr/db.yaml")
		s.never("web")
		s.write("etc/db.yaml", "")
		s.expect("web=vendor@usr/web.yaml")
		s.remove("etc/db.yaml")
		s.expect("db=vendor@usr/db.yaml web=vendor@usr/web.yaml")
	})
}

// That a file was emptied which gave a pod may be an accident, so the pod runs on, as in a folder
// alone. A link to /dev/null is none.
func TestAnEmptiedFileRemovesNothing(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("db", "vendor"), "etc/web.yaml": pod("web", "admin")}, func(s *stack) {
		s.expect("db=vendor@usr/web.yaml web=admin@etc/web.yaml")
		s.write("etc/web.yaml", "")
		s.expect("db=vendor@usr/web.yaml web=admin@etc/web.yaml")
		if f := s.file("etc/web.yaml"); !f.Held || len(f.Problems) != 1 {
			t.Errorf("the emptied file is held %v, with %v", f.Held, f.Problems)
		}
		s.restart()
		s.expect("db=vendor@usr/web.yaml web=admin@etc/web.yaml")
		s.remove("etc/web.yaml")
		must(t, os.Symlink("/dev/null", s.path("etc/web.yaml")))
		s.expect("")
	})
}

// An empty file in the lowest folder is what it is in a folder alone: an error.
func TestNothingIsBelowTheLowestFolder(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": "", "etc/web.yaml": pod("web", "admin")}, func(s *stack) {
		s.expect("web=admin@etc/web.yaml")
		if f := s.file("usr/web.yaml"); len(f.Problems) != 1 {
			t.Errorf("the empty file says %v", f.Problems)
		}
	})
}

func TestOnePodAloneHasAUID(t *testing.T) {
	pinned := func(name string) string {
		return strings.Replace(pod(name, "i"), "{name: "+name+"}", "{name: "+name+", uid: u-1}", 1)
	}
	layered(t, map[string]string{"usr/web.yaml": pinned("web")}, func(s *stack) {
		s.expect("web=i@usr/web.yaml")
		s.write("etc/db.yaml", pinned("db"))
		s.expect("web=i@usr/web.yaml")
		if f := s.file("etc/db.yaml"); len(f.Problems) != 1 || f.Problems[0].Field != "metadata.uid" {
			t.Errorf("the second pod of the uid says %v", f.Problems)
		}
	})
}

// A pod may use a claim that a file of another folder gives.
func TestClaimsAreOfAllFolders(t *testing.T) {
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	user := strings.Replace(pod("web", "i"), "spec: {", "spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data}}], ", 1)
	for _, dirs := range [][2]string{{"usr", "etc"}, {"etc", "usr"}} {
		layered(t, map[string]string{dirs[0] + "/claim.yaml": claim, dirs[1] + "/web.yaml": user}, func(s *stack) {
			s.expect("web=i@" + dirs[1] + "/web.yaml")
			if f := s.file(dirs[1] + "/web.yaml"); len(f.Problems) > 0 || len(s.all) != 1 {
				t.Errorf("the pod says %v, in %d snapshots", f.Problems, len(s.all))
			}
		})
	}
}

// One folder becomes two, and two become one: what runs is known to come from where it came.
func TestFoldersComeAndGoWithTheSettings(t *testing.T) {
	layered(t, map[string]string{"usr/web.yaml": pod("web", "vendor"), "etc/own.yaml": pod("own", "admin")}, func(s *stack) {
		s.expect("own=admin@etc/own.yaml web=vendor@usr/web.yaml")
		s.quit()
		s.dirs[1] = s.path("srv")
		must(t, os.Mkdir(s.path("srv"), 0o755))
		s.start()
		s.expect("own=admin@etc/own.yaml web=vendor@usr/web.yaml")
		s.write("srv/own.yaml", pod("own", "moved"))
		s.expect("own=moved@srv/own.yaml web=vendor@usr/web.yaml")
		if of := s.record.Of(s.path("usr")); of.Folder == nil || of.Folder.Path != s.path("usr") {
			t.Errorf("the record of the lower folder alone is %+v", of)
		}
	})
}
