package agent

import (
	"strings"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri/critest"
)

// A version that becomes another one in place crashes and starts again with the image of its
// own, while the disk does not take the next one.
func TestAVersionThatIsNotRecordedInPlaceGivesNoImageToTheOneThatRuns(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs())
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		before, _ := r.Container("c")
		first := before.Config.Image.Image
		release := r.cannotBeMarked()
		r.want(manifest("web", "img:2"))
		r.after(time.Minute)
		r.Exit("web-n/c", 1)
		r.after(time.Minute)
		for _, c := range r.Containers() {
			if c.State == rt.ContainerState_CONTAINER_RUNNING && c.Config.Image.Image != first {
				t.Errorf("it runs %s under the name %s", c.Config.Image.Image, c.Config.Image.UserSpecifiedImage)
			}
		}
		release()
		r.after(6 * time.Minute)
		r.replaced("img:2")
	})
}

// imageOf returns the image that the running container c has.
func (r *rig) imageOf() string {
	r.Helper()
	for _, c := range r.Containers() {
		if c.Name == "c" && c.State == rt.ContainerState_CONTAINER_RUNNING {
			return c.Config.Image.Image
		}
	}
	return "none"
}

// A pull for the next version may move a tag that both have: what crashes meanwhile starts again
// as what it ran. The next version starts with what was pulled for it, and nothing is pulled twice.
func TestWhatRunsKeepsItsImagesWhileAnotherVersionWaits(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:latest")
		run := func(policy, more string) string {
			return strings.Replace(manifest("web", "img:latest", more), "image:", "imagePullPolicy: "+policy+", image:", 1)
		}
		r.want(run("IfNotPresent", ""))
		first := r.imageOf()
		r.holds("web", "", "")
		r.MoveTag("img:latest")
		r.want(run("Always", "hostname: other"))
		r.after(time.Minute)
		if n := r.Count("PullImage"); n != 1 {
			t.Fatalf("%d pulls for the next version", n)
		}
		r.Exit("web-n/c", 1)
		r.after(time.Minute)
		if now := r.imageOf(); now != first {
			t.Errorf("it crashed and runs %s, not %s", now, first)
		}
		r.KillSandbox("web-n")
		r.after(time.Minute)
		if now := r.imageOf(); now != first {
			t.Errorf("its sandbox died, and it runs %s, not %s", now, first)
		}
		r.releases("web")
		r.after(time.Minute)
		if now := r.imageOf(); now == first || now == "none" {
			t.Errorf("the next version runs %s", now)
		}
		if n := r.Count("PullImage"); n != 1 {
			t.Errorf("%d pulls", n)
		}
	})
}

// mounted returns the image that the running container c has mounted.
func (r *rig) mounted() string {
	r.Helper()
	for _, c := range r.Containers() {
		if c.Name == "c" && c.State == rt.ContainerState_CONTAINER_RUNNING {
			return c.Config.Mounts[0].Image.GetImage()
		}
	}
	return "none"
}

// The image of a volume is part of what ran, too.
func TestTheImageOfAVolumeIsTheOneThatRan(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("vol:1")
		r.want(withImageVolume("vol:1", "IfNotPresent"))
		r.after(time.Minute)
		first := r.mounted()
		r.MoveTag("vol:1")
		r.holds("web", "", "")
		bad := strings.Replace(withImageVolume("vol:1", "IfNotPresent"), "img:1", "img:2", 1)
		bad = strings.Replace(bad, "annotations: {", "annotations: {monopod.update-health: 30s, ", 1)
		r.want(strings.Replace(bad, "spec:\n", "spec:\n  hostname: other\n", 1))
		r.after(time.Minute)
		r.Exit("web-n/c", 1)
		r.after(time.Minute)
		if now := r.mounted(); now != first {
			t.Errorf("it crashed while another version waits, and has mounted %s, not %s", now, first)
		}
		r.Program("img:2", critest.Exits(1))
		r.releases("web")
		r.after(5 * time.Minute)
		if now := r.mounted(); now != first || len(r.rollbacks()) != 1 {
			t.Errorf("it came back (%d) and has mounted %s, not %s", len(r.rollbacks()), now, first)
		}
	})
}
