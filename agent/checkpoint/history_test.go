package checkpoint

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/agent/disk"
	"monopod/manifests"
)

// remembers records that a version of web is ready since a minute, and checks what there is then: the
// images of the versions, the last one first, each with when it was ready.
func remembers(t *testing.T, r *Root, image, ran string, minute int, want ...string) {
	t.Helper()
	v := instanceOf("u1", image, 0).Version()
	v.Digest = manifests.Restored(v.Pod)
	err := r.Remember(PastOf(v, map[string]string{"c": ran}, at(minute)), at(minute-1))
	if err != nil {
		t.Fatal(err)
	}
	all, err := r.History(manifests.KeyOf(v.Pod))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for k := range all {
		p := &all[k]
		text := p.Version().Spec.Containers[0].Image + " " + p.Images["c"] + " " + p.Since.Format("4")
		if !p.Until.IsZero() {
			text += "-" + p.Until.Format("4")
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
}

func at(minute int) time.Time { return time.Date(2026, 5, 1, 12, minute, 0, 0, time.UTC) }

func TestTheLastThreeVersionsAreThere(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	remembers(t, r, "img:1", "a", 10, "img:1 a 10")
	remembers(t, r, "img:1", "a", 11, "img:1 a 10")
	remembers(t, r, "img:1", "moved", 12, "img:1 moved 10")
	remembers(t, r, "img:2", "b", 20, "img:2 b 20", "img:1 moved 10-19")
	remembers(t, r, "img:3", "c", 30, "img:3 c 30", "img:2 b 20-29", "img:1 moved 10-19")
	remembers(t, r, "img:1", "a", 40, "img:1 a 40", "img:3 c 30-39", "img:2 b 20-29")
	remembers(t, r, "img:4", "d", 50, "img:4 d 50", "img:1 a 40-49", "img:3 c 30-39")
}

// An agent that starts as a version is ready does not know when the one before was.
func TestAVersionWasReadyUntilTheNextOneAtTheLatest(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	one, two := instanceOf("u1", "img:1", 0).Version(), instanceOf("u1", "img:2", 0).Version()
	one.Digest, two.Digest = manifests.Restored(one.Pod), manifests.Restored(two.Pod)
	err := errors.Join(r.Remember(PastOf(one, nil, at(10)), time.Time{}), r.Remember(PastOf(two, nil, at(20)), time.Time{}))
	all, _ := r.History(manifests.KeyOf(one.Pod))
	if err != nil || len(all) != 2 || !all[1].Until.Equal(at(20)) {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestADamagedHistoryIsPutAside(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	remembers(t, r, "img:1", "a", 10, "img:1 a 10")
	key := instanceOf("u1", "img:1", 0).Key()
	err := os.WriteFile(r.historyFile(key), []byte(`{"versions": [{}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.History(key)
	var damaged *disk.Damaged
	if !errors.As(err, &damaged) || !strings.HasPrefix(err.Error(), "versions of "+key.String()+" that were ready: ") {
		t.Errorf("it is read: %v", err)
	}
	remembers(t, r, "img:2", "b", 20, "img:2 b 20")
	err = os.WriteFile(r.historyFile(key), []byte(`{`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	remembers(t, r, "img:3", "c", 30, "img:3 c 30")
}

func TestHistoriesOfOtherNamesAreForgotten(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	if err := r.ForgetOtherHistories(nil); err != nil {
		t.Fatalf("there is none: %v", err)
	}
	web, db := instanceOf("u1", "img:1", 0).Version(), instanceOf("u2", "img:1", 0).Version()
	db.Pod.Name = "db"
	err := errors.Join(r.Remember(PastOf(web, nil, at(1)), at(0)), r.Remember(PastOf(db, nil, at(1)), at(0)),
		r.ForgetOtherHistories([]manifests.Key{web.Key()}))
	if err != nil {
		t.Fatal(err)
	}
	left, _ := r.History(web.Key())
	gone, err := r.History(db.Key())
	if len(left) != 1 || len(gone) != 0 || err != nil {
		t.Errorf("%d and %d are left, %v", len(left), len(gone), err)
	}
	if err := r.ForgetHistory(web.Key()); err != nil {
		t.Error(err)
	}
	if left, _ = r.History(web.Key()); len(left) != 0 {
		t.Error("it is left")
	}
}
