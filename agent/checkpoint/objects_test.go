package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/disk"
	"monopod/manifests"
)

func aSecret(name, value string) *manifests.Object {
	return manifests.NewObject(nil, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"k": []byte(value)}}, "/m/a.yaml")
}

func aMap(name, value string) *manifests.Object {
	return manifests.NewObject(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"k": value}}, nil, "/m/a.yaml")
}

func openTestRoot(t *testing.T, dir string) *Root {
	t.Helper()
	r, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestObjectsAreSavedForTheAgentAlone(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	long := strings.Repeat("n", 253)
	if err := r.SaveObjects([]*manifests.Object{aMap("x", "map"), aSecret("x", "hunter2"), aSecret(long, "a")}); err != nil {
		t.Fatal(err)
	}
	if err := r.SaveObjects([]*manifests.Object{aMap("x", "other"), aSecret("x", "hunter2")}); err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "objects", "*"))
	for _, path := range append(paths, filepath.Join(dir, "objects")) {
		if i, err := os.Stat(path); err != nil || i.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, i.Mode(), err)
		}
	}
	var log bytes.Buffer
	all, _ := r.Objects(slog.New(slog.NewTextHandler(&log, nil)))
	if got := fmt.Sprint(all); got != "[ConfigMap default/x Secret default/x]" || len(paths) != 2 || log.Len() > 0 {
		t.Fatalf("%s in %v; log %s", got, paths, &log)
	}
	if all[0].ConfigMap.Data["k"] != "other" || string(all[1].Secret.Data["k"]) != "hunter2" || all[0].File != "/m/a.yaml" || !all[1].Same(aSecret("x", "hunter2")) {
		t.Errorf("%+v", all[0].ConfigMap)
	}
}

func TestASavedObjectThatIsUnusableIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	if err := r.SaveObjects([]*manifests.Object{aMap("good", "1"), aSecret("torn", "hunter2")}); err != nil {
		t.Fatal(err)
	}
	torn, _ := filepath.Glob(filepath.Join(dir, "objects", "secret-*"))
	for name, text := range map[string]string{torn[0]: `{"secret": {"data": {"k": "hunter2`, filepath.Join(dir, "objects", "none.json"): "{}",
		filepath.Join(dir, "objects", "configmap-other.json"): `{"configMap": {"metadata": {"name": "a"}}}`, filepath.Join(dir, "objects", ".tmp-1"): ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	all, _ := r.Objects(slog.New(slog.NewTextHandler(&log, nil)))
	if got := fmt.Sprint(all); got != "[ConfigMap default/good]" {
		t.Errorf("objects %s", got)
	}
	if text := log.String(); strings.Count(text, "unusable") != 3 || strings.Contains(text, "hunter2") {
		t.Errorf("log %s", text)
	}
}

func TestAnObjectThatDidNotChangeIsNotWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	o := aMap("x", "1")
	if err := r.SaveObjects([]*manifests.Object{o}); err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "objects", "*"))
	before, _ := os.Stat(paths[0])
	if err := r.SaveObjects([]*manifests.Object{o, aMap("z", "1")}); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(paths[0]); !os.SameFile(before, after) {
		t.Error("it is another file")
	}
}

func TestAnObjectThatIsInUseOutlivesItsManifest(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	one, two := aSecret("one", "hunter2"), aMap("two", "1")
	inUse := []*manifests.Object{one, two}
	r.UseObjects(func() []*manifests.Object { return inUse })
	is := func(want string) {
		t.Helper()
		given, retained := (&Root{Dir: dir}).Objects(slog.New(slog.DiscardHandler))
		if got := fmt.Sprintf("given %v, retained %v", given, retained); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	noErr := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	noErr(r.SaveObjects([]*manifests.Object{one, two}))
	is("given [ConfigMap default/two Secret default/one], retained []")
	noErr(r.SaveObjects([]*manifests.Object{two}))
	is("given [ConfigMap default/two], retained [Secret default/one]")
	noErr(r.RetainObjects())
	is("given [ConfigMap default/two], retained [Secret default/one]")
	paths, _ := filepath.Glob(filepath.Join(dir, "objects", "secret-*"))
	if i, err := os.Stat(paths[0]); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
	inUse = []*manifests.Object{two}
	noErr(r.RetainObjects())
	is("given [ConfigMap default/two], retained []")
	inUse = nil
	noErr(r.RetainObjects())
	is("given [ConfigMap default/two], retained []")
	noErr(r.SaveObjects([]*manifests.Object{one}))
	is("given [Secret default/one], retained []")
}

// The next agent of a root dir may be a former version of it, and the one before was.
func TestFormerAgentsReadARetainedObjectAsOneThatAManifestGave(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	one := aMap("one", "1")
	r.UseObjects(func() []*manifests.Object { return []*manifests.Object{one} })
	if err := r.SaveObjects(nil); err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "objects", "*"))
	var former struct { // as it was before anything was retained
		File      string        `json:"file"`
		ConfigMap *v1.ConfigMap `json:"configMap,omitempty"`
		Secret    *v1.Secret    `json:"secret,omitempty"`
	}
	if err := disk.Read(paths[0], disk.JSON(&former)); err != nil || former.File != "/m/a.yaml" || former.ConfigMap == nil || former.ConfigMap.Data["k"] != "1" {
		t.Errorf("%+v, %v", former, err)
	}
	text, err := json.Marshal(former)
	if err == nil {
		err = os.WriteFile(paths[0], disk.Seal(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if given, retained := r.Objects(slog.New(slog.DiscardHandler)); len(given) != 1 || !given[0].Same(one) || len(retained) != 0 {
		t.Errorf("what it writes is read as given %v, retained %v", given, retained)
	}
}

func TestAnAgentOfOneRunLeavesWhatOthersSaved(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	if err := r.SaveObjects([]*manifests.Object{aMap("one", "1")}); err != nil {
		t.Fatal(err)
	}
	if err := (&Root{Dir: dir}).RetainObjects(); err != nil { // it says of none that it is in use
		t.Fatal(err)
	}
	if given, _ := r.Objects(slog.New(slog.DiscardHandler)); len(given) != 1 {
		t.Errorf("there is %v", given)
	}
}

// Another process reads what is saved, and leaves the rest as it is.
func TestSavedObjectsAreReadBesideAnAgent(t *testing.T) {
	dir := t.TempDir()
	if _, err := SavedObjects(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none was ever saved: %v", err)
	}
	r := openTestRoot(t, dir)
	if err := r.SaveObjects([]*manifests.Object{aMap("one", "1"), aSecret("two", "2"), aMap("three", "3")}); err != nil {
		t.Fatal(err)
	}
	damaged := r.Path(objectsDir, objectFile(aMap("three", "3").Key()))
	err := errors.Join(os.WriteFile(r.Path(objectsDir, "read.me"), []byte("{}"), 0o600), os.WriteFile(damaged, []byte("{"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	all, err := SavedObjects(dir)
	if len(all) != 2 || err != nil || !Exists(damaged) {
		t.Errorf("%v, %v; the damaged one is there: %v", all, err, Exists(damaged))
	}
}
