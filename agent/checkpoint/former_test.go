package checkpoint

import (
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/agent/disk"
	"monopod/manifests"
)

// formerRule is what the agents did with a file of the root dir that knew no next versions, and no
// objects that are retained. They pass over fields that they do not know.
type formerRule struct {
	file    string   // a pattern
	reads   []string // the fields that they know; nil: they do not read the file
	ignores []string // and the others
	then    string   // what becomes of the file with such an agent
}

var formerRules = []formerRule{
	{file: "pods/u1/pod.json", then: "is that of the instance, and is written again without the others",
		reads: []string{"file", "digest", "accepted", "boot", "active", "removed", "pod", "condemned", "hooked", "verdict", "marks", "renew", "revision", "changed",
			"following", "Unwritten"},
		ignores: []string{"bounded", "excused"}},
	{file: "pods/u1/next.json", then: "stays until its pod goes"},
	{file: "pods/u2/next.json", then: "goes with its folder, which has no checkpoint, a minute later"},
	{file: "updates/*.json", then: "is the record of the trial, and is written again without the others",
		reads:   []string{"former", "file", "images", "tried", "reason", "boot", "spent"},
		ignores: []string{"bounded", "unchanged", "output", "asked"}},
	{file: "history/*.json", then: "stays as it is, also of a pod that goes: the next agent removes it then"},
	{file: "objects/*.json", then: "is one that manifests give: it goes once these were read and do not",
		reads: []string{"file", "configMap", "secret"}, ignores: []string{"retained"}},
	{file: "folder.json", then: "is the record of the manifest folder, and is written again without the others",
		reads: []string{"folder", "forgotten"}, ignores: []string{"unclear", "came"}},
	{file: "manifest-serial", then: "stays as it is: the agent goes by the number that the answer was saved with, and the next one by the higher of the two"},
	{file: "instance*", reads: []string{}, then: "is the same"},
	{file: "lock", reads: []string{}, then: "is the same"},
	{file: "runtime", then: "stays as it is: the agent looks for a runtime as at the first start"},
}

// ruleOf returns the rule of a file.
func ruleOf(path string) (formerRule, bool) {
	k := slices.IndexFunc(formerRules, func(r formerRule) bool { ok, _ := filepath.Match(r.file, path); return ok })
	if k < 0 {
		return formerRule{}, false
	}
	return formerRules[k], true
}

// everything is a root dir with all that this package keeps in one.
func everything(t *testing.T) *Root {
	t.Helper()
	r := openTestRoot(t, t.TempDir())
	web, next, same := instanceOf("u1", "img:1", time.Hour), instanceOf("u2", "img:2", 0), instanceOf("u1", "img:3", 0)
	same.Pod.Name = "db" // of another name: there is one next version of each
	web.Excused, web.Boot = map[string]uint32{"c": 1}, "b"
	retained := aMap("retained", "b")
	r.UseObjects(func() []*manifests.Object { return []*manifests.Object{retained} })
	update := &Update{Former: web.Pod, File: "/m/web.yaml", Bounded: true, Images: map[string]string{"c": "sha256:1", "volume/v": "sha256:2"}, Unchanged: []string{"c"},
		Tried: next.Pod, Reason: "it failed", Output: "c: no", Asked: &Asked{At: time.Now()}, Boot: "b", Spent: time.Second}
	for _, err := range []error{r.Save(web), r.SaveNext(next), r.SaveNext(same), r.SaveUpdate(web.Key(), update), r.Remember(PastOf(web.Version(), update.Images, time.Now()), time.Time{}), r.SaveObjects([]*manifests.Object{aMap("given", "a")}),
		r.SaveSerial("https://h/x", manifests.Serial{Signer: "key", Number: 7}), r.KeepRuntime("unix:///run/x.sock", Boot{ID: "b"}),
		r.SaveFolder(manifests.Record{Folder: &manifests.Folder{Path: "/m"}, Unclear: map[string]manifests.Unclear{"/m/a.yaml": {Version: "1", Seen: 1}}, Came: map[string]int{"default/web-n": 2}})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// Each file of the root dir has a rule, and each of its fields is one that a former agent knows or
// one that it may pass over. The checksum is such a field, too.
func TestWhatAFormerAgentDoesWithEachFile(t *testing.T) {
	r := everything(t)
	seen := map[string]bool{}
	err := filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path, _ = filepath.Rel(r.Dir, path)
		rule, ok := ruleOf(path)
		if !ok {
			t.Errorf("%s has no rule", path)
			return nil
		}
		seen[rule.file] = true
		if len(rule.reads) == 0 {
			return nil
		}
		var fields map[string]json.RawMessage
		if err := disk.Read(r.Path(path), disk.JSON(&fields)); err != nil {
			return err
		}
		delete(fields, "sum")
		for name := range fields {
			if !slices.Contains(rule.reads, name) && !slices.Contains(rule.ignores, name) {
				t.Errorf("%s has the field %s, of which no rule is known", path, name)
			}
			seen[rule.file+" "+name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range formerRules {
		for _, name := range append([]string{""}, rule.ignores...) {
			if !seen[strings.TrimSpace(rule.file+" "+name)] {
				t.Errorf("nothing is written of %s %s", rule.file, name)
			}
		}
	}
}

// What a former agent reads says all of the instance, and what it leaves is read again: nothing of
// a pod is another one by that.
func TestAVersionIsTheSameThroughAFormerAgent(t *testing.T) {
	r := everything(t)
	before, err := r.load("u1", disk.Read)
	if err != nil {
		t.Fatal(err)
	}
	for path := range map[string]bool{"pods/u1/pod.json": true, "folder.json": true} {
		rule, _ := ruleOf(path)
		var fields map[string]json.RawMessage
		if err := disk.Read(r.Path(path), disk.JSON(&fields)); err != nil {
			t.Fatal(err)
		}
		for name := range fields {
			if !slices.Contains(rule.reads, name) {
				delete(fields, name)
			}
		}
		b, err := json.Marshal(fields)
		if err == nil {
			err = os.WriteFile(r.Path(path), disk.Seal(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(r.PodDir("u2")); err != nil {
		t.Fatal(err)
	}
	r.Close()
	again := openTestRoot(t, r.Dir)
	all, err := again.Checkpoints(slog.New(slog.DiscardHandler))
	if err != nil || len(all) != 2 { // the next version of the other name is left
		t.Fatalf("%d checkpoints, %v", len(all), err)
	}
	after := Accepted(all)[before.Key()]
	if after == nil || after.Uid() != before.Uid() || after.Digest != before.Digest || !after.Accepted.Equal(&before.Accepted) || after.Next {
		t.Errorf("%+v is accepted, want %+v", after, before)
	}
	if again.NextOf(before.Key()) != nil {
		t.Error("the next version is there without its file")
	}
	if f := again.Folder(slog.New(slog.DiscardHandler)); f.Folder == nil || f.Folder.Path != "/m" || f.Unclear != nil {
		t.Errorf("of the manifest folder it knows %+v", f)
	}
}
