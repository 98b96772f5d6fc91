package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/disk"
	"monopod/manifests"
)

// instanceOf is a checkpoint of the pod web.
func instanceOf(uid, image string, age time.Duration) *Checkpoint {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID(uid)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: image}}}}
	return NewCheckpoint(&manifests.Pod{Pod: p, File: "/m/web.yaml", Digest: manifests.Restored(p.DeepCopy())}, metav1.NewTime(time.Now().Add(-age)))
}

func (c *Checkpoint) asNext() *Checkpoint { d := *c; d.Next = true; return &d }

func TestWhichVersionIsAccepted(t *testing.T) {
	former, next := instanceOf("u1", "img:1", time.Hour), instanceOf("u2", "img:2", 0).asNext()
	going := former.Removing(metav1.Now(), Mark{})
	same := instanceOf("u1", "img:2", 0).asNext()
	for _, row := range []struct {
		name string
		all  []*Checkpoint
		want *Checkpoint
	}{
		{"the one that runs", []*Checkpoint{former}, former},
		{"it is also while another one is prepared, which is newer", []*Checkpoint{next, former}, former},
		{"once it is marked as going, the other one", []*Checkpoint{going, next}, next},
		{"under the same uid, too", []*Checkpoint{going, same}, same},
		{"and not before", []*Checkpoint{same, former}, former},
		{"the former one is gone", []*Checkpoint{next}, next},
		{"the newer of two that are prepared", []*Checkpoint{going, instanceOf("u3", "img:3", time.Minute).asNext(), next}, next},
		{"none of a pod that goes", []*Checkpoint{going}, nil},
	} {
		if got := Accepted(row.all)[former.Key()]; got != row.want {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}

func TestTheNextVersionOutlastsTheAgent(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	r := openTestRoot(t, dir)
	former, next, third := instanceOf("u1", "img:1", time.Hour), instanceOf("u2", "img:2", 0), instanceOf("u3", "img:3", 0)
	read := func(want ...string) *Root {
		t.Helper()
		r := &Root{Dir: dir}
		all, err := r.Checkpoints(log)
		var got []string
		for _, p := range LastGood(all) {
			got = append(got, p.Spec.Containers[0].Image)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("the next agent knows %v, %v, want %v", got, err, want)
		}
		return r
	}
	noErr := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	noErr(r.Save(former))
	noErr(r.SaveNext(next))
	noErr(r.SaveNext(third))
	noErr(r.SaveNext(next))
	if again := read("img:1"); again.NextOf(former.Key()).Uid() != "u2" || again.Remnant("u2") != NoRemnant || again.Remnant("u3") != Orphaned || len(again.StoredPods()) != 2 {
		t.Errorf("next is %+v, of u2 %v is left, of u3 %v", again.NextOf(former.Key()), again.Remnant("u2"), again.Remnant("u3"))
	}
	noErr(r.Save(former.Removing(metav1.Now(), Mark{})))
	read("img:2")
	if ok, err := r.Promote(third); ok || err != nil {
		t.Errorf("what is not prepared is promoted: %v", err)
	}
	if ok, err := r.Promote(next); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if read("img:2").NextOf(former.Key()) != nil || r.NextOf(former.Key()) != nil {
		t.Error("it is still the next one")
	}
	noErr(r.SaveNext(third))
	before := r.NextOf(former.Key())
	noErr(r.SaveNext(instanceOf("u3", "img:3", 0)))
	noErr(r.DropNext(before))
	if !r.HasNext("u3") || !Exists(r.next("u3")) {
		t.Error("the one that took its place is dropped")
	}
	noErr(r.DropNext(r.NextOf(former.Key())))
	noErr(r.DropNext(r.NextOf(former.Key()))) // there is none
	if read("img:2").HasNext("u3") || r.HasNext("u3") {
		t.Error("it is not dropped")
	}
	pods, err := PodsIn(dir)
	if err != nil || len(pods) != 2 {
		t.Errorf("%d pods, %v", len(pods), err)
	}
}

// What is gone from the disk is not promoted, and not known any more.
func TestANextVersionWhoseFileIsGoneIsNone(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	next := instanceOf("u2", "img:2", 0)
	if err := errors.Join(r.SaveNext(next), os.Remove(r.next("u2"))); err != nil {
		t.Fatal(err)
	}
	if ok, err := r.Promote(next); ok || err != nil || r.NextOf(next.Key()) != nil {
		t.Errorf("promoted: %v, %v; known: %+v", ok, err, r.NextOf(next.Key()))
	}
}

// Next versions of a name may be written and removed at a time: what is known is what is on disk.
func TestNextVersionsAreOnDiskAsTheyAreKnown(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	of := func(k int) *Checkpoint { return instanceOf("u1", fmt.Sprint("img:", k), 0) }
	for k := range 200 {
		if err := r.SaveNext(of(k)); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		was, errs := r.NextOf(of(k).Key()), [2]error{}
		both.Go(func() { errs[0] = r.DropNext(was) })
		both.Go(func() { errs[1] = r.SaveNext(of(k + 1)) })
		both.Wait()
		if err := errors.Join(errs[:]...); err != nil || r.NextOf(was.Key()) == nil || !Exists(r.next("u1")) {
			t.Fatalf("after %d: %v; known: %v, on disk: %v", k, err, r.NextOf(was.Key()) != nil, Exists(r.next("u1")))
		}
	}
}

// A damaged one is of no pod, and its folder goes.
func TestADamagedNextVersionIsLeftAside(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	next := instanceOf("u2", "img:2", 0)
	if err := r.SaveNext(next); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.next("u2"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := &Root{Dir: dir}
	if all, err := again.Checkpoints(slog.New(slog.DiscardHandler)); err != nil || len(all) != 0 || again.HasNext("u2") {
		t.Errorf("%v, %v", all, err)
	}
	if got := again.Remnant("u2"); got != Orphaned {
		t.Errorf("remnant %v", got)
	}
}

// An agent that knows no next.json sees in the root dir the version that runs alone, as it
// reads pod.json and nothing else of a folder; one without is of no pod to it.
func TestAFormerAgentIgnoresANextVersion(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	if err := r.Save(instanceOf("u1", "img:1", time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []string{"u2", "u1"} {
		if err := r.SaveNext(instanceOf(uid, "img:2", 0)); err != nil {
			t.Fatal(err)
		}
		former := &Root{Dir: dir} // which reads none of them
		c, err := former.load("u1", disk.Read)
		if err != nil || c.Pod.Spec.Containers[0].Image != "img:1" || c.IsRemoving() {
			t.Errorf("it reads %+v, %v", c, err)
		}
		if _, err := former.load("u2", disk.Read); !errors.Is(err, fs.ErrNotExist) || former.Remnant("u2") != Orphaned {
			t.Errorf("of the other it reads %v, and sees %v", err, former.Remnant("u2"))
		}
	}
}

// A next version that was accepted is not prepared any more; any other one is.
func TestANextVersionThatIsAcceptedIsVoid(t *testing.T) {
	for _, row := range []struct {
		name     string
		accepted *Checkpoint
		isVoid   bool
	}{
		{"none was accepted", nil, false},
		{"another uid was", instanceOf("u1", "img:2", 0), false},
		{"another version of its uid was", instanceOf("u2", "img:1", 0), false},
		{"it was", instanceOf("u2", "img:2", 0), true},
		{"it was, and goes", instanceOf("u2", "img:2", 0).Removing(metav1.Now(), Mark{}), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := openTestRoot(t, t.TempDir())
			next := instanceOf("u2", "img:2", 0)
			if err := r.DropVoidNext(next.Key()); err != nil {
				t.Errorf("there is none: %v", err)
			}
			if err := r.SaveNext(next); err != nil {
				t.Fatal(err)
			}
			if row.accepted != nil {
				if err := r.Save(row.accepted); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.DropVoidNext(next.Key()); err != nil || r.HasNext("u2") == row.isVoid || Exists(r.next("u2")) == row.isVoid {
				t.Errorf("%v; it is known: %v, it is on disk: %v", err, r.HasNext("u2"), Exists(r.next("u2")))
			}
		})
	}
}

// What cannot be removed is known on.
func TestANextVersionThatIsNotRemovedIsKnown(t *testing.T) {
	r := openTestRoot(t, t.TempDir())
	next := instanceOf("u2", "img:2", 0)
	err := errors.Join(r.SaveNext(next), os.Remove(r.next("u2")), os.MkdirAll(r.next("u2")+"/in the way", 0o700))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.DropNext(next); err == nil || !r.HasNext("u2") {
		t.Errorf("%v; it is known: %v", err, r.HasNext("u2"))
	}
}
