package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// spoilt is a manifest that does not parse, of the pod or of another one.
func spoilt(pod string) string { return strings.Replace(podYAML(pod), "spec:", "spec: [", 1) }

// TestAPodThatMayBeInAFileThatIsSpoiltStays: rows of steps, of which the last is what runs
// after each file that is gone must be known to be.
func TestAPodThatMayBeInAFileThatIsSpoiltStays(t *testing.T) {
	const both = "db@all.yaml=busybox web@web.yaml=busybox"
	type steps func(p *looker)
	merge := func(p *looker) { p.put("all.yaml", podYAML("db")+"---\n"+spoilt("web")) }
	remove := func(name string) steps {
		return func(p *looker) { must(p.T, os.Remove(filepath.Join(p.dir, name))) }
	}
	for _, r := range []struct {
		name string
		do   []steps // with a look after each
		want string
	}{
		{"it moves into a file that was there, and is spoilt on the way", []steps{merge, remove("web.yaml")},
			"db@all.yaml=busybox web@all.yaml=busybox held:all.yaml bad:all.yaml ?"},
		{"the file is made good without it", []steps{merge, remove("web.yaml"), func(p *looker) { p.put("all.yaml", podYAML("db")) }},
			"db@all.yaml=busybox"},
		{"the file is made good with it", []steps{merge, remove("web.yaml"), func(p *looker) { p.put("all.yaml", podYAML("db")+"---\n"+podYAML("web")) }},
			"db@all.yaml=busybox web@all.yaml=busybox"},
		{"a new file is spoilt long before the other goes", []steps{func(p *looker) { p.put("new.yaml", spoilt("web")) },
			func(p *looker) { p.expect(both + " bad:new.yaml ?") }, remove("web.yaml")},
			"db@all.yaml=busybox web@new.yaml=busybox held:new.yaml bad:new.yaml ?"},
		{"a file that does not name the pod was spoilt long before it goes", []steps{func(p *looker) { p.put("new.yaml", "kind: Pod\n") },
			func(p *looker) { p.expect(both + " bad:new.yaml ?") }, func(p *looker) { p.now = p.now.Add(time.Minute) }, remove("web.yaml")},
			"db@all.yaml=busybox bad:new.yaml ?"},
		{"or a moment before, and may have been cut short", []steps{func(p *looker) {
			p.put("new.yaml", "kind: Pod\n")
			must(p.T, os.Remove(filepath.Join(p.dir, "web.yaml")))
		}},
			"db@all.yaml=busybox web@new.yaml=busybox held:new.yaml bad:new.yaml ?"},
		{"a file was spoilt before the pod came", []steps{func(p *looker) { p.put("new.yaml", spoilt("x")) },
			func(p *looker) { p.put("late.yaml", podYAML("late")) }, remove("late.yaml")},
			both + " bad:new.yaml ?"},
		{"that file got another content since", []steps{func(p *looker) { p.put("new.yaml", spoilt("x")) },
			func(p *looker) { p.put("late.yaml", podYAML("late")) }, func(p *looker) { p.put("new.yaml", spoilt("late")) }, remove("late.yaml")},
			"db@all.yaml=busybox late@new.yaml=busybox web@web.yaml=busybox held:new.yaml bad:new.yaml ?"},
		{"a file that names what is wrong in it hides no other pod", []steps{func(p *looker) { p.put("all.yaml", podYAML("db")+"---\n"+podYAML("c", "foo: bar")) }, remove("web.yaml")},
			"db@all.yaml=busybox bad:all.yaml ?"},
		{"a file that gave it, too, is cut short before it, long before the other goes", []steps{
			func(p *looker) { p.put("all.yaml", podYAML("db")+"---\n"+podYAML("web")) },
			func(p *looker) { p.put("all.yaml", podYAML("db")+"---\nkind: [") },
			func(p *looker) { p.put("all.yaml", "kind: [") }, remove("web.yaml")},
			"db@all.yaml=busybox web@all.yaml=busybox held:all.yaml bad:all.yaml ?"},
		{"a file that gave it, too, cannot be read since long", []steps{
			func(p *looker) { p.put("more.yaml", podYAML("web")) },
			func(p *looker) {
				remove("more.yaml")(p)
				must(p.T, os.Symlink("/nowhere", filepath.Join(p.dir, "more.yaml")))
			}, remove("web.yaml")},
			"db@all.yaml=busybox web@more.yaml=busybox held:more.yaml bad:more.yaml ?"},
		{"a file that gave it, too, has another error since long", []steps{
			func(p *looker) { p.put("all.yaml", podYAML("db")+"---\n"+podYAML("web")) },
			func(p *looker) { p.put("all.yaml", podYAML("db")+"---\n"+podYAML("c", "foo: bar")) }, remove("web.yaml")},
			"db@all.yaml=busybox web@all.yaml=busybox held:all.yaml bad:all.yaml ?"},
		{"a file that gave it, too, was read without it since", []steps{
			func(p *looker) { p.put("all.yaml", podYAML("db")+"---\n"+podYAML("web")) },
			func(p *looker) { p.put("all.yaml", podYAML("db")) },
			func(p *looker) { p.put("all.yaml", podYAML("db")+"---\nkind: [") }, remove("web.yaml")},
			"db@all.yaml=busybox bad:all.yaml ?"},
		{"a file that cannot be read since long tells of no change", []steps{func(p *looker) { must(p.T, os.Symlink("/nowhere", filepath.Join(p.dir, "link.yaml"))) },
			func(p *looker) { p.expect(both + " bad:link.yaml ?") }, remove("web.yaml")},
			"db@all.yaml=busybox bad:link.yaml ?"},
		{"a file that was there cannot be read when the other goes", []steps{func(p *looker) {
			remove("web.yaml")(p)
			remove("all.yaml")(p)
			must(p.T, os.Symlink("/nowhere", filepath.Join(p.dir, "all.yaml")))
		}}, "db@all.yaml=busybox web@all.yaml=busybox held:all.yaml bad:all.yaml ?"},
	} {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(podYAML("db")), 0o644))
			fill(t, dir, "web")
			p := at(t, dir, nil)
			p.expect(both)
			for _, do := range r.do {
				do(p)
				p.now, p.full = p.now.Add(10*p.Settle), true
				p.step(p.now)
			}
			p.expect(r.want)
			p.next(nil).expect(r.want)
		})
	}
}

// What a file gave before it was spoilt is known to the next agent.
func TestTheNextAgentKnowsWhatASpoiltFileGave(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "web")
	p := at(t, dir, nil)
	p.put("all.yaml", podYAML("db")+"---\n"+podYAML("web"))
	p.expect("db@all.yaml=busybox web@web.yaml=busybox bad:all.yaml")
	p.put("all.yaml", "kind: [")
	p.expect("db@all.yaml=busybox web@web.yaml=busybox held:all.yaml bad:all.yaml ?")
	p = p.next(nil)
	p.expect("db@all.yaml=busybox web@web.yaml=busybox held:all.yaml bad:all.yaml ?")
	must(t, os.Remove(filepath.Join(dir, "web.yaml")))
	p.expect("db@all.yaml=busybox web@all.yaml=busybox held:all.yaml bad:all.yaml ?")
	p.put("all.yaml", podYAML("db"))
	p.expect("db@all.yaml=busybox")
}

// Of a pod that has moved the agent's record has the file that it came from first.
func TestAPodThatMovedBeforeItsFileWasSpoiltStaysOverARestart(t *testing.T) {
	for name, text := range map[string]string{"an error": podYAML("c", "foo: bar"), "no YAML": "kind: ["} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, "web")
			p := at(t, dir, nil)
			first := p.last.Pods
			must(t, os.Rename(filepath.Join(dir, "web.yaml"), filepath.Join(dir, "new.yaml")))
			p.expect("web@new.yaml=busybox")
			p.put("new.yaml", text)
			p.expect("web@new.yaml=busybox held:new.yaml bad:new.yaml ?")
			p.last.Pods = first
			p = p.next(nil)
			p.expect("web@new.yaml=busybox held:new.yaml bad:new.yaml ?")
		})
	}
}

// An object moves as a pod does.
func TestAnObjectThatMayBeInAFileThatIsSpoiltStays(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "web")
	p := at(t, dir, nil)
	p.put("app.yaml", mapYAML("app", "v"))
	p.expect("web@web.yaml=busybox")
	p.put("web.yaml", podYAML("web")+"---\nkind: ConfigMap\nmetadata: {name: app\n")
	p.expect("web@web.yaml=busybox bad:web.yaml ?")
	must(t, os.Remove(filepath.Join(dir, "app.yaml")))
	p.expect("web@web.yaml=busybox held:web.yaml bad:web.yaml ?")
	if o := p.last.Objects; len(o) != 1 || filepath.Base(o[0].File) != "web.yaml" {
		t.Errorf("objects %v", o)
	}
	p.put("web.yaml", podYAML("web"))
	p.expect("web@web.yaml=busybox")
	if o := p.last.Objects; len(o) != 0 {
		t.Errorf("objects %v", o)
	}
}

// A file that a program has open may come to give what another one gave.
func TestAPodThatMayBeInAFileInTheWritingStays(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "all", "web")
	p := at(t, dir, nil)
	w, err := os.OpenFile(filepath.Join(dir, "all.yaml"), os.O_WRONLY|os.O_TRUNC, 0)
	must(t, err)
	defer w.Close()
	_, err = w.WriteString(podYAML("all"))
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, "web.yaml")))
	for range 5 { // it grows between the looks
		p.soon("all@all.yaml=busybox web@web.yaml=busybox")
		p.now = p.now.Add(p.Settle)
		_, err = w.WriteString("# more\n")
		must(t, err)
	}
	_, err = w.WriteString("---\n" + podYAML("web"))
	must(t, errors.Join(err, w.Close()))
	p.expect("all@all.yaml=busybox web@all.yaml=busybox")
}

// TestPodsMoveThroughSpoiltContents walks at random: pods move between files through contents
// that do not parse, files are renamed, agents start again. No pod goes that is somewhere in the
// end; each that is not goes once all files are good.
func TestPodsMoveThroughSpoiltContents(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { walkMoves(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func walkMoves(t *testing.T, random *rand.Rand) {
	dir, names := t.TempDir(), []string{"a.yaml", "b.yaml", "c.yaml", "d.yaml"}
	gives := map[string][]string{"a.yaml": {"p1", "p2"}, "b.yaml": {"p3", "p4"}, "c.yaml": {"p5"}}
	write := func(p *looker, name string, good bool) {
		pods := gives[name]
		if good && len(pods) == 0 {
			must(t, os.RemoveAll(filepath.Join(dir, name)))
			return
		}
		text := ""
		for _, pod := range pods {
			document := podYAML
			if !good && random.IntN(3) > 0 {
				document = func(pod string, _ ...string) string { return spoilt(pod) }
			}
			text += document(pod) + "---\n"
		}
		if !good {
			text += fmt.Sprintf("# %d\nkind: [\n", random.Uint64())
		}
		p.put(name, text)
	}
	p := at(t, dir, nil)
	for _, name := range names {
		write(p, name, true)
	}
	look := func(most time.Duration) {
		p.now, p.full = p.now.Add(time.Duration(random.Int64N(int64(most)))), true
		p.step(p.now)
	}
	look(time.Second)
	look(time.Second)
	for range 12 {
		from, to := names[random.IntN(len(names))], names[random.IntN(len(names))]
		if len(gives[from]) == 0 || from == to {
			continue
		}
		pod := gives[from][0]
		gives[from] = gives[from][1:]
		if gone := random.IntN(6) == 0; !gone {
			gives[to] = append(slices.Clone(gives[to]), pod)
		}
		steps := []func(){func() { write(p, to, false) }, func() { write(p, from, random.IntN(3) > 0) }} // the other may be spoilt, too
		if random.IntN(3) == 0 {                                                                         // in one look
			spoil, take := steps[0], steps[1]
			steps = []func(){func() { spoil(); take() }}
		}
		for _, do := range steps {
			do()
			for range random.IntN(3) + 1 {
				look([]time.Duration{100 * time.Millisecond, time.Second, time.Hour}[random.IntN(3)])
			}
		}
		if random.IntN(4) == 0 {
			p = p.next(nil)
		}
		missing(t, p, gives)
		for _, name := range []string{to, from}[:random.IntN(3)] {
			write(p, name, true)
			look(time.Second)
			missing(t, p, gives)
		}
	}
	for _, name := range names {
		write(p, name, true)
		look(time.Second)
		missing(t, p, gives)
	}
	for range 3 {
		p.now, p.full = p.now.Add(time.Minute), true
		p.step(p.now)
	}
	want := slices.Sorted(func(yield func(string) bool) {
		for pods := range maps.Values(gives) {
			for _, pod := range pods {
				if !yield("default/" + pod + "-node1") {
					return
				}
			}
		}
	})
	if got := podNames(p.last.Pods); got != strings.Join(want, " ") {
		t.Errorf("in the end %s run, want %s", got, want)
	}
}

// A Source of before leaves out what it does not know, and the next one takes what is there then
// for what was there before the pods.
func TestARecordOfUnclearContentsIsReadByAFormerSource(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	p := at(t, dir, nil)
	p.put("b.yaml", "kind: [")
	p.expect("a@a.yaml=busybox bad:b.yaml ?")
	b, err := json.Marshal(p.kept)
	must(t, err)
	var former struct {
		Folder    *Folder
		Forgotten map[string]string
	}
	must(t, json.Unmarshal(b, &former))
	var again Record
	must(t, json.Unmarshal(b, &again))
	if former.Folder == nil || !reflect.DeepEqual(again.Unclear, p.kept.Unclear) || len(again.Unclear) != 1 {
		t.Errorf("%s is %+v, and to a former Source %+v", b, again, former)
	}
	again.Unclear = nil
	p = p.next(func(c *SourceConfig) { c.Record = again })
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	p.expect("bad:b.yaml ?")
}

// An older Source lists for each content what came after it. That counts as long as the content is there.
func TestWhatAnOlderSourceKnewOfAnUnclearContentCounts(t *testing.T) {
	dir := t.TempDir()
	p := at(t, dir, nil)
	p.put("bad.yaml", "kind: [ # early later last")
	p.expect("bad:bad.yaml ?")
	fill(t, dir, "early", "later")
	p.full = true
	const both = "early@early.yaml=busybox later@later.yaml=busybox "
	p.expect(both + "bad:bad.yaml ?")
	path := filepath.Join(dir, "bad.yaml")
	p.kept.Unclear = map[string]Unclear{path: {Version: p.kept.Unclear[path].Version, Later: []string{"default/later-node1"}}}
	p.kept.Came = nil
	p = p.next(nil)
	p.expect(both + "bad:bad.yaml ?")
	fill(t, dir, "last")
	p.full = true
	p.step(p.now)
	for range 2 { // what the older one knew is known to the next, too
		p = p.next(nil)
		p.expect("early@early.yaml=busybox last@last.yaml=busybox later@later.yaml=busybox bad:bad.yaml ?")
	}
	for _, name := range []string{"early", "later", "last"} {
		must(t, os.Remove(filepath.Join(dir, name+".yaml")))
	}
	p.full = true
	p.expect("early@bad.yaml=busybox held:bad.yaml bad:bad.yaml ?")
}

// missing fails for each pod that a file gives, or would if it were not spoilt, and that went.
func missing(t *testing.T, p *looker, gives map[string][]string) {
	t.Helper()
	for name, pods := range gives {
		for _, pod := range pods {
			if p.last.find(Key{Namespace: "default", Name: pod + "-node1"}) == nil {
				t.Fatalf("%s of %s went: %s", pod, name, describeSnapshot(*p.last))
			}
		}
	}
}
