package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"monopod/agent/config"
	"monopod/cri/critest"
	"monopod/manifests"
)

// follower is a manifest of a pod that follows its tag.
func follower(image string, extra ...string) string {
	return strings.Replace(manifest("web", image, extra...), "metadata: {", "metadata: {annotations: {monopod.follow-images: 1h, monopod.update-health: 30s}, ", 1)
}

// runsMoved checks that the container runs the image of an id, started as often as given.
func (r *rig) runsMoved(id string, starts int) {
	r.Helper()
	r.expect("default/web-n/c")
	if now := r.imageOf(); now != id {
		r.Errorf("%s runs, want %s", now, id)
	}
	if n := r.Count("StartContainer"); n != starts {
		r.Errorf("%d starts, want %d", n, starts)
	}
}

func TestAMovedTagIsAnUpdate(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs())
		r.want(follower("img:1"))
		r.after(10 * time.Minute)
		first := r.imageOf()
		r.after(3 * time.Hour)
		r.runsMoved(first, 1)
		if n := r.Count("PullImage"); n < 2 || n > 5 {
			t.Errorf("%d pulls in 3 h", n)
		}
		second := r.Republish("img:1")
		r.after(80 * time.Minute)
		r.runsMoved(second, 2)
		if n := r.updateRecords(); n != 0 {
			t.Errorf("%d records of updates", n)
		}
		r.tells("web-n", "Normal TagMoved: tag img:1 means another image: docker.io/library/img@sha256:")
		r.want(strings.Replace(follower("img:1"), "1h", "2h", 1))
		r.after(time.Minute)
		r.runsMoved(second, 2)
		r.kill()
		r.start()
		r.want(strings.Replace(follower("img:1"), "1h", "2h", 1))
		r.after(10 * time.Hour)
		r.runsMoved(second, 2)
	})
}

// A version that its owner's tag brought goes back like any other, for as long as the tag means it,
// over agents and boots.
func TestAMovedTagThatDoesNotWorkGoesBack(t *testing.T) {
	live(t, func(r *rig) {
		r.want(follower("img:1"))
		r.after(time.Minute)
		first := r.imageOf()
		second := r.Republish("img:1")
		r.Program(second, critest.Exits(1))
		r.after(80 * time.Minute)
		if n := len(r.rollbacks()); n != 1 {
			t.Fatalf("%d rollbacks", n)
		}
		if now := r.imageOf(); now != first {
			t.Errorf("%s runs, want %s", now, first)
		}
		r.after(5 * time.Hour)
		r.kill()
		r.start()
		r.want(follower("img:1"))
		r.after(5 * time.Hour)
		if n := len(r.rollbacks()); n != 0 || r.imageOf() != first { // the next agent has events of its own
			t.Errorf("%d more rollbacks, and %s runs", n, r.imageOf())
		}
		third := r.Republish("img:1")
		r.after(80 * time.Minute)
		if now := r.imageOf(); now != third {
			t.Errorf("%s runs, want %s, to which the tag moved next", now, third)
		}
	})
}

// What runs starts again as what it ran, whatever its tag means by then, while the next version
// waits.
func TestWhatFollowsATagRunsOnAsItIsWhileItIsHeld(t *testing.T) {
	live(t, func(r *rig) {
		doc := strings.Replace(follower("img:1"), "image:", "imagePullPolicy: Always, image:", 1)
		r.want(doc)
		r.after(time.Minute)
		first := r.imageOf()
		r.holds("web", "audit", "")
		second := r.Republish("img:1")
		r.after(80 * time.Minute)
		r.Exit("c", 1)
		r.after(time.Minute)
		r.runsMoved(first, 2)
		if text := r.foretells(doc); !strings.Contains(text, "[c]") || !strings.Contains(text, "held: audit") {
			t.Errorf("what would change: %s", text)
		}
		r.kill()
		r.start()
		r.want(doc)
		r.after(time.Minute)
		r.runsMoved(first, 2)
		r.KillSandbox("web-n")
		r.after(time.Minute)
		r.runsMoved(first, 3)
		r.releases("web")
		r.after(time.Minute)
		r.runsMoved(second, 4)
	})
}

// An image that the machine got in another way is followed at once, without a registry.
func TestATagThatAnArchiveMovesIsFollowedAtOnce(t *testing.T) {
	live(t, func(r *rig) {
		r.want(follower("img:1"))
		r.after(15 * time.Minute)
		pulls := r.Count("PullImage")
		r.MoveTag("img:1")
		first := r.imageOf()
		r.sync.came <- []string{"docker.io/library/img:1"}
		r.after(10 * time.Second)
		if now := r.imageOf(); now == first {
			t.Errorf("%s still runs", now)
		}
		if n := r.Count("PullImage"); n != pulls {
			t.Errorf("%d pulls", n-pulls)
		}
	})
}

func TestATagThatVanishedIsSaidAndChangesNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.want(follower("img:1"))
		r.after(time.Minute)
		first := r.imageOf()
		r.OnPull("img:1", 0, errors.New("not found"))
		r.after(80 * time.Minute)
		r.runsMoved(first, 1)
		r.tells("web-n", "Warning TagNotChecked: image img:1 of pod default/web-n runs on as it is")
		if text := fmt.Sprint(r.store.Manifests().Reports); !strings.Contains(text, "image img:1 of pod default/web-n") || !strings.Contains(text, "next try about") {
			t.Errorf("problems %s", text)
		}
		r.after(10 * time.Hour)
		if text := strings.Join(r.happened("web-n"), "\n"); strings.Count(text, "TagNotChecked") != 1 || strings.Contains(text, "TagNotChecked x") {
			t.Errorf("told more than once:\n%s", text)
		}
		r.OnPull("img:1", 0, nil)
		r.after(80 * time.Minute)
		if text := fmt.Sprint(r.store.Manifests().Reports); strings.Contains(text, "img:1") {
			t.Errorf("problems %s", text)
		}
	})
}

func TestOnlyPodsThatAskForItFollowTheirTags(t *testing.T) {
	for name, doc := range map[string]string{
		"no annotation":       manifest("web", "img:1"),
		"an annotation of 0s": strings.Replace(follower("img:1"), "1h", "0s", 1),
		"a pod that ends":     follower("img:1", "restartPolicy: OnFailure"),
		"a digest":            follower("img@sha256:" + strings.Repeat("1", 64)),
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(doc)
				r.after(time.Minute)
				pulls := r.Count("PullImage")
				r.after(24 * time.Hour)
				if n := r.Count("PullImage"); n != pulls {
					t.Errorf("%d pulls", n-pulls)
				}
			})
		})
	}
}

func TestTheSettingFollowsAndEnds(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		first := r.imageOf()
		r.change(func(c *config.Config) { c.FollowImages = 10 * time.Minute })
		r.after(time.Minute)
		second := r.Republish("img:1")
		r.after(12 * time.Minute)
		r.runsMoved(second, 2)
		r.change(func(c *config.Config) { c.FollowImages = 0 })
		pulls := r.Count("PullImage")
		r.after(10 * time.Hour)
		if n := r.Count("PullImage"); n != pulls || first == second {
			t.Errorf("%d pulls", n-pulls)
		}
		r.runsMoved(second, 2)
	})
}

// A manifest that cannot be read changes nothing of what its tags mean, and neither does one that is
// read again after a restart.
func TestWhatTagsMeanOutlivesAnAgentWhoseManifestsCannotBeRead(t *testing.T) {
	live(t, func(r *rig) {
		r.want(follower("img:1"))
		r.after(time.Minute)
		second := r.Republish("img:1")
		r.after(80 * time.Minute)
		r.runsMoved(second, 2)
		r.kill()
		r.start()
		if len(r.known) != 1 || r.known[0].Digest != r.decode(follower("img:1")).Digest {
			t.Errorf("the manifests' last good versions are %+v", r.known)
		}
		r.offers <- manifests.Snapshot{Pods: r.known}
		r.settle()
		r.after(time.Minute)
		r.runsMoved(second, 2)
		r.want(follower("img:1"))
		r.after(2 * time.Hour)
		r.runsMoved(second, 2)
	})
}

// The image of a volume is one of the pod's images, by which its versions are told apart.
func TestHistoryTellsWhichImageOfAVolumeATagMeant(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("vol:1")
		r.want(strings.Replace(withImageVolume("vol:1", "Always"), "annotations: {", "annotations: {monopod.follow-images: 1h, ", 1))
		r.after(time.Minute)
		r.Republish("vol:1")
		r.after(80 * time.Minute)
		all := r.versions()
		if len(all) != 2 || all[0] == all[1] || !strings.Contains(all[0], "vol:1@sha256:") {
			t.Errorf("the versions are %q", all)
		}
		former, _, _ := strings.Cut(all[1], " ")
		if now, _, _ := strings.Cut(all[0], " "); now == former {
			t.Errorf("both are of %s", now)
		}
	})
}
