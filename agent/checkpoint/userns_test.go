package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// poolOf gives pods so many ranges of ids, from the fifth on.
func poolOf(ranges uint64) func() (IdRange, error) {
	return func() (IdRange, error) { return IdRange{First: 5 * IdsPerPod, Length: ranges * IdsPerPod}, nil }
}

// takes gives users to a pod that has a folder, and returns the first id; 0: it has none.
func takes(t *testing.T, r *Root, uid string) (first uint32, err error) {
	t.Helper()
	if err := os.MkdirAll(r.PodDir(uid), 0o750); err != nil {
		t.Fatal(err)
	}
	u, err := r.Users.Take(uid)
	if err != nil {
		return 0, err
	}
	if len(u.Uids) != 1 || len(u.Gids) != 1 || u.Uids[0].String() != u.Gids[0].String() || u.Uids[0].Length != IdsPerPod || u.Uids[0].ContainerId != 0 {
		t.Errorf("%s has %v", uid, u)
	}
	return u.Uids[0].HostId, nil
}

// Whichever range a root dir begins with, its pods get all of them, each one once.
func TestEachPodHasARangeOfIDs(t *testing.T) {
	for k := range 8 {
		r := openTestRoot(t, t.TempDir())
		r.Instance, r.Users.Pool = fmt.Sprint("instance ", k), poolOf(5)
		var got []uint32
		for n := range 5 {
			uid := fmt.Sprint("u", n)
			first, err := takes(t, r, uid)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := takes(t, r, uid); again != first || err != nil {
				t.Errorf("a pod has the ids from %d on, then from %d on, %v", first, again, err)
			}
			got = append(got, first/IdsPerPod)
		}
		slices.Sort(got)
		if !slices.Equal(got, []uint32{5, 6, 7, 8, 9}) {
			t.Errorf("the ranges %v are taken", got)
		}
		if _, err := takes(t, r, "u9"); err == nil || !strings.Contains(err.Error(), "all 5 ranges of user ids are taken") {
			t.Errorf("one more: %v", err)
		}
		r.Users.Release("u3")
		if _, err := takes(t, r, "u9"); err != nil {
			t.Errorf("once one is free: %v", err)
		}
	}
	if all := allIDs(); all.First != IdsPerPod || all.First+all.Length != 1<<32 {
		t.Errorf("all ids of pods are %+v", all)
	}
}

// The next agent knows the ranges that pods have; where one cannot be read, no pod gets any.
func TestRangesOutlastTheAgent(t *testing.T) {
	const one, other = `[{"hostId": 393216, "containerId": 0, "length": 65536}]`, `[{"hostId": 458752, "containerId": 0, "length": 65536}]`
	of := func(users, groups string) string {
		return `{"uidMappings": ` + users + `, "gidMappings": ` + groups + `}`
	}
	two := strings.TrimSuffix(one, "]") + ", " + strings.TrimPrefix(other, "[")
	short := strings.Replace(one, "65536", "65535", 1)
	for _, row := range []struct {
		name, text string
		good       bool
	}{
		{"a range", of(one, one), true},
		{"half of one", of(one, one)[:40], false},
		{"none of groups", of(one, "[]"), false},
		{"none of users", of("[]", one), false},
		{"two of users", of(two, one), false},
		{"two of groups", of(one, two), false},
		{"another one of groups", of(one, other), false},
		{"one of another length", of(short, short), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := openTestRoot(t, t.TempDir())
			r.Users.Pool = poolOf(2)
			err := errors.Join(os.MkdirAll(r.PodDir("u0"), 0o750), os.MkdirAll(r.PodDir("u1"), 0o750), os.WriteFile(filepath.Join(r.PodDir("u1"), "userns"), []byte(row.text), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			first, err := takes(t, r, "u1")
			other, otherErr := takes(t, r, "u2")
			switch {
			case row.good && (first != 6*IdsPerPod || err != nil || other != 5*IdsPerPod || otherErr != nil):
				t.Errorf("it has the ids from %d on, %v; another one from %d on, %v", first, err, other, otherErr)
			case !row.good && (err == nil || otherErr == nil):
				t.Errorf("it has the ids from %d on, another one from %d on", first, other)
			}
		})
	}
}

func TestAPodWithoutIDsIsToldWhy(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	r.Users.Pool = func() (IdRange, error) { return IdRange{}, errors.New("no answer") }
	if _, err := takes(t, r, "u1"); err == nil || err.Error() != "user ids for pods: no answer" {
		t.Errorf("the machine does not say which ids there are: %v", err)
	}
	r.Users.Pool = poolOf(2)
	if _, err := r.Users.Take("none"); err == nil || !strings.HasPrefix(err.Error(), "user ids of the pod: ") {
		t.Errorf("it has no folder: %v", err)
	}
	if _, err := takes(t, r, "u1"); err != nil {
		t.Errorf("once the machine says it: %v", err)
	}
	gone := openTestRoot(t, t.TempDir())
	if err := os.RemoveAll(gone.Path("pods")); err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Users.Take("u1"); err == nil || !strings.HasPrefix(err.Error(), "user ids of pods: ") {
		t.Errorf("what pods have cannot be read: %v", err)
	}
}
