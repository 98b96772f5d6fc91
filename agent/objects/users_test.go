package objects

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"monopod/manifests"
)

// version returns a pod that refers to ConfigMaps.
func version(t *testing.T, names ...string) *manifests.Pod {
	t.Helper()
	var refs []string
	for _, name := range names {
		refs = append(refs, "{configMapRef: {name: "+name+"}}")
	}
	pods, _ := read(t, pod("envFrom: ["+strings.Join(refs, ", ")+"]"))
	return &manifests.Pod{Pod: pods[0]}
}

func configMap(name string) manifests.ObjectKey { return KeyOf("configmap", "default", name) }

func TestAnObjectHasUsersWhileAnyVersionOfAnyNameRefersToIt(t *testing.T) {
	one, two, both := version(t, "one"), version(t, "two"), version(t, "one", "two")
	for _, row := range []struct {
		name  string
		turns []Versions
		needs string
		freed bool // in the last turn
	}{
		{"the version that runs", []Versions{{Accepted: one}}, "one", false},
		{"the version that is desired", []Versions{{Offered: one}}, "one", false},
		{"the version that is prepared beside it", []Versions{{Accepted: one, Prepared: two}}, "one two", false},
		{"the version that was stopped", []Versions{{Stopped: one}}, "one", false},
		{"the version that comes back after a trial", []Versions{{Accepted: two, Offered: two, Former: one}}, "one two", false},
		{"several versions need one object", []Versions{{Accepted: one, Offered: both}}, "one two", false},
		{"one of two versions goes", []Versions{{Accepted: one, Offered: both}, {Accepted: both, Offered: both}}, "one two", false},
		{"the last version goes", []Versions{{Accepted: one, Offered: two}, {Accepted: two, Offered: two}}, "two", true},
		{"the name goes", []Versions{{Accepted: both}, {}}, "", true},
		{"nothing changes", []Versions{{Accepted: one}, {Accepted: one}}, "one", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var u Users
			var n, other Needs
			u.Count(&other, Versions{Accepted: version(t, "others")})
			freed := false
			for _, v := range row.turns {
				freed = u.Count(&n, v)
			}
			var got []string
			for _, name := range []string{"one", "two"} {
				if u.Need(configMap(name)) {
					got = append(got, name)
				}
			}
			if needs := strings.Join(got, " "); needs != row.needs || freed != row.freed || n.IsEmpty() != (row.needs == "") || !u.Need(configMap("others")) {
				t.Errorf("needs %q, freed %v, empty %v", needs, freed, n.IsEmpty())
			}
		})
	}
}

func TestWhatTwoNamesNeedStaysUntilBothAreGone(t *testing.T) {
	var u Users
	var a, b Needs
	u.Count(&a, Versions{Accepted: version(t, "one")})
	u.Count(&b, Versions{Accepted: version(t, "one")})
	if u.Count(&a, Versions{}) || !u.Need(configMap("one")) {
		t.Error("gone with the first")
	}
	if !u.Count(&b, Versions{}) || u.Need(configMap("one")) {
		t.Error("it stays")
	}
}

func TestTheSameVersionsAreCountedAtALook(t *testing.T) {
	var u Users
	var n Needs
	v := Versions{Accepted: version(t, "one", "two"), Offered: version(t, "three")}
	u.Count(&n, v)
	if spent := testing.AllocsPerRun(10, func() { u.Count(&n, v) }); spent > 0 {
		t.Errorf("%v allocations", spent)
	}
}

func TestAnObjectThatIsNeededOutlivesItsManifest(t *testing.T) {
	_, all := read(t, object("ConfigMap", "one", "k: v"), object("ConfigMap", "two", "k: v"))
	_, edited := read(t, object("ConfigMap", "one", "k: w"))
	_, none := read(t, pod(""))
	var s Store
	var u Users
	var n Needs
	names := func() string {
		found := s.All()
		slices.SortFunc(found, func(a, b *manifests.Object) int { return a.Key().Compare(b.Key()) })
		return fmt.Sprint(found)
	}
	s.Replace(all, &u)
	u.Count(&n, Versions{Accepted: version(t, "one")})
	if changed := s.Replace(none, &u); fmt.Sprint(changed) != "[ConfigMap default/two]" || names() != "[ConfigMap default/one]" {
		t.Errorf("changed %v; there is %s", changed, names())
	}
	if changed := s.Replace(edited, &u); fmt.Sprint(changed) != "[ConfigMap default/one]" || s.Now().all[configMap("one")] != edited[0] {
		t.Errorf("it comes back with another content: changed %v", changed)
	}
	u.Count(&n, Versions{})
	if s.Release(&u) || names() != "[ConfigMap default/one]" {
		t.Error("what a manifest gives goes without one that needs it")
	}
	u.Count(&n, Versions{Accepted: version(t, "one")})
	s.Replace(none, &u)
	if s.Release(&u) {
		t.Error("what is needed goes")
	}
	u.Count(&n, Versions{})
	if !s.Release(&u) || names() != "[]" {
		t.Errorf("after the last version there is %s", names())
	}
}

func TestWhatFormerAgentsRetainedIsThereFromTheStart(t *testing.T) {
	_, all := read(t, object("ConfigMap", "one", "k: v"), object("ConfigMap", "two", "k: v"))
	var s Store
	var u Users
	var n Needs
	s.Start(all[:1], all[1:])
	u.Count(&n, Versions{Accepted: version(t, "two")})
	s.Replace(all[:1], &u)
	if m, _ := s.Now().ConfigMap("default", "two"); m == nil {
		t.Error("it is gone with the first snapshot")
	}
	u.Count(&n, Versions{})
	if !s.Release(&u) || len(s.All()) != 1 {
		t.Errorf("there is %v", s.All())
	}
}
