package checkpoint

import (
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/update"
	"monopod/cgroups"
	"monopod/manifests"
)

// changes is a verdict by which these containers restart, or are resized.
func changes(kind update.Kind, names ...string) update.Verdict {
	v := update.Verdict{Kind: kind}
	for _, name := range names {
		v.Containers = append(v.Containers, update.Container{Name: name, Kind: kind})
	}
	return v
}

// Each version that is accepted in place counts one on, and what follows it adds to what followed
// the one before and has not yet.
func TestWhatFollowsAVersionThatIsAcceptedInPlace(t *testing.T) {
	to := func(digest string) *manifests.Pod {
		return &manifests.Pod{Pod: &v1.Pod{}, Digest: digest, File: "/m/a.yaml"}
	}
	first := NewCheckpoint(to("d0"), metav1.Now())
	if same := first.Updated(to("d1"), update.Verdict{}, cgroups.Resources{}, nil); same.Revision != 0 || same.Following != nil || same.Digest != "d1" {
		t.Errorf("one that means the same: %+v", same)
	}
	second := first.Updated(to("d2"), changes(update.Restart, "a"), cgroups.Resources{Shares: 2}, map[string]string{"a": "a0"})
	third := second.Updated(to("d3"), changes(update.Resize, "a", "b"), cgroups.Resources{Shares: 9}, map[string]string{"b": "b0"})
	fourth := third.Updated(to("d4"), changes(update.Restart, "b"), cgroups.Resources{Shares: 5}, nil)
	fifth := fourth.Updated(to("d5"), changes(update.Resize, "c"), cgroups.Resources{Shares: 5}, nil)
	for _, row := range []struct {
		c        *Checkpoint
		revision int
		changed  map[string]int
		hooked   map[string]string
		resize   []string
		shares   int64
	}{
		{second, 1, map[string]int{"a": 1}, map[string]string{"a": "a0"}, nil, 2},
		{third, 2, map[string]int{"a": 1}, map[string]string{"a": "a0", "b": "b0"}, []string{"a", "b"}, 9},
		{fourth, 3, map[string]int{"a": 1, "b": 3}, map[string]string{"a": "a0", "b": "b0"}, []string{"a"}, 9},
		{fifth, 4, map[string]int{"a": 1, "b": 3}, map[string]string{"a": "a0", "b": "b0"}, []string{"c", "a"}, 9},
	} {
		c, f := row.c, row.c.Following
		if c.Revision != row.revision || !maps.Equal(c.Changed, row.changed) || !maps.Equal(c.HooksDone, row.hooked) {
			t.Errorf("%s: revision %d, changed %v, hooked %v", c.Digest, c.Revision, c.Changed, c.HooksDone)
		}
		if f == nil || !slices.Equal(f.Resize, row.resize) || f.Former == nil || f.Former.Shares != row.shares || f.Raised {
			t.Errorf("%s is followed by %+v", c.Digest, f)
		}
	}
	settled := third.WithFollowing(&Following{Resize: []string{"a"}})
	if f := settled.Updated(to("d6"), changes(update.Resize, "b"), cgroups.Resources{Shares: 3}, nil).Following; f.Former.Shares != 3 {
		t.Errorf("where there were no former values: %+v", f.Former)
	}
}

// A container that has its resources is taken from those that lack them, in a copy.
func TestAContainerThatHasItsResources(t *testing.T) {
	c := &Checkpoint{Pod: &v1.Pod{}, Revision: 3, Following: &Following{Resize: []string{"a", "b"}}}
	resized := c.Resized("a", false)
	if !slices.Equal(resized.Following.Resize, []string{"b"}) || len(resized.Changed) > 0 || len(c.Following.Resize) != 2 {
		t.Errorf("resized: %+v, %v; before %+v", resized.Following, resized.Changed, c.Following)
	}
	restarted := c.Resized("a", true).Resized("b", true)
	if len(restarted.Following.Resize) > 0 || !maps.Equal(restarted.Changed, map[string]int{"a": 3, "b": 3}) || len(c.Changed) > 0 {
		t.Errorf("restarted: %+v, %v", restarted.Following, restarted.Changed)
	}
	if done := c.WithFollowing(nil).Resized("a", true); done.Following != nil || done.Changed["a"] != 3 {
		t.Errorf("nothing followed: %+v", done)
	}
}
