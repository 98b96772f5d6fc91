package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/config"
	"monopod/cri/critest"
)

// reports returns what the agent says is wrong, apart from pods.
func (r *rig) reports() string { return fmt.Sprint(r.store.Manifests().Reports) }

func TestAShorterTimeToFollowCountsAtOnce(t *testing.T) {
	for name, shorten := range map[string]func(r *rig, doc string){
		"the annotation": func(r *rig, doc string) { r.want(strings.Replace(doc, "720h", "1h", 1)) },
		"the setting": func(r *rig, _ string) {
			r.change(func(c *config.Config) { c.FollowImages = time.Hour })
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				doc := manifest("web", "img:1")
				if name == "the annotation" {
					doc = strings.Replace(follower("img:1"), "1h", "720h", 1)
				} else {
					r.change(func(c *config.Config) { c.FollowImages = 720 * time.Hour })
				}
				r.want(doc)
				r.after(15 * time.Minute)
				second := r.Republish("img:1")
				shorten(r, doc)
				r.after(3 * time.Hour)
				if now := r.imageOf(); now != second {
					t.Errorf("%s runs, want %s", now, second)
				}
			})
		})
	}
}

func TestTheProblemOfATagGoesWithTheTag(t *testing.T) {
	live(t, func(r *rig) {
		r.want(follower("img:1"))
		r.after(time.Minute)
		r.OnPull("img:1", 0, errors.New("not found"))
		r.after(80 * time.Minute)
		if text := r.reports(); !strings.Contains(text, "img:1") {
			t.Fatalf("reports %s", text)
		}
		r.want(follower("img:2"))
		r.after(5 * time.Hour)
		if text := r.reports(); strings.Contains(text, "img:1") {
			t.Errorf("img:1 is named by no manifest, and reports say %s", text)
		}
	})
}

func TestAnArchiveIsFollowedWhileTheRegistryHangs(t *testing.T) {
	live(t, func(r *rig) {
		r.want(follower("img:1"))
		r.after(time.Second)
		first := r.imageOf()
		r.OnPull("img:1", 30*time.Minute, errors.New("i/o timeout"))
		r.after(11 * time.Minute) // the first check runs
		r.MoveTag("img:1")
		r.sync.came <- []string{"docker.io/library/img:1"}
		r.after(20 * time.Second)
		if now := r.imageOf(); now == first {
			t.Errorf("%s still runs", now)
		}
	})
}

func TestAChecksRegistryThatHangsKeepsNoPodFromStarting(t *testing.T) {
	live(t, func(r *rig) {
		var docs []string
		for k := range 4 {
			image := fmt.Sprintf("far:%d", k)
			r.AddImage(image)
			docs = append(docs, strings.Replace(follower(image), "name: web", fmt.Sprintf("name: far%d", k), 1))
		}
		r.want(docs...)
		r.after(time.Second)
		for k := range 4 {
			r.OnPull(fmt.Sprintf("far:%d", k), 30*time.Minute, errors.New("i/o timeout"))
		}
		r.after(11 * time.Minute)
		r.want(append(docs, manifest("web", "near:1"))...)
		r.after(time.Minute)
		if c, is := r.Container("default/web-n/c"); !is {
			t.Errorf("the pod of another registry does not run after a minute: %+v", c)
		}
	})
}

func TestTheCheckOfAPodThatIsGoneEnds(t *testing.T) {
	live(t, func(r *rig) {
		r.want(follower("img:1"))
		r.after(time.Second)
		r.OnPull("img:1", 30*time.Minute, errors.New("i/o timeout"))
		r.after(11 * time.Minute)
		r.want()
		r.after(time.Minute)
		if n := r.Open("PullImage"); n != 0 {
			t.Errorf("%d pulls for a pod that is gone", n)
		}
	})
}

func TestAnImageThatIsNeverPulledIsNotPulledToFollowIt(t *testing.T) {
	live(t, func(r *rig) {
		r.want(strings.Replace(follower("img:1"), "image:", "imagePullPolicy: Never, image:", 1))
		r.after(time.Minute)
		first := r.imageOf()
		r.Republish("img:1") // somebody else's
		r.after(3 * time.Hour)
		if n := r.Count("PullImage"); n != 0 {
			t.Errorf("%d pulls", n)
		}
		if now := r.imageOf(); now != first {
			t.Errorf("%s of a registry runs", now)
		}
	})
}

func TestALookThatFailsIsRepeated(t *testing.T) {
	live(t, func(r *rig) {
		r.want(follower("img:1"))
		r.after(15 * time.Minute)
		first := r.imageOf()
		r.OnPull("img:1", 0, errors.New("no route to host"))
		r.MoveTag("img:1")
		r.Fault(critest.On("ImageStatus").Times(1).Fail(codes.Unavailable, "restarting"))
		r.sync.came <- []string{"docker.io/library/img:1"}
		r.after(10 * time.Hour)
		if now := r.imageOf(); now == first {
			t.Errorf("%s still runs", now)
		}
	})
}

func TestTheSettingTriesNoFailedManifestAgain(t *testing.T) {
	live(t, func(r *rig) {
		doc := strings.Replace(healthy("30s", manifest("web", "img:1")), "containers: [", `containers: [{name: b, image: "img:1"}, `, 1)
		r.want(doc)
		r.after(time.Minute)
		r.Program("img:2", critest.Exits(1))
		bad := strings.Replace(doc, `name: c, image: "img:1"`, `name: c, image: "img:2"`, 1)
		r.want(bad)
		r.after(10 * time.Minute)
		if n := len(r.rollbacks()); n != 1 {
			t.Fatalf("%d rollbacks", n)
		}
		r.change(func(c *config.Config) { c.FollowImages = time.Hour })
		r.after(10 * time.Minute)
		if n := len(r.rollbacks()); n != 1 {
			t.Errorf("%d rollbacks", n)
		}
	})
}

func TestAManifestThatIsAgainThatOfTheFormerVersionStartsNothing(t *testing.T) {
	for name, doc := range map[string]string{"not followed": healthy("30s", manifest("web", "img:1")), "followed": follower("img:1")} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(doc)
				r.after(15 * time.Minute)
				first := r.imageOf()
				r.Program("img:2", critest.Exits(1))
				r.want(strings.Replace(doc, "img:1", "img:2", 1))
				r.after(10 * time.Minute)
				if n := len(r.rollbacks()); n != 1 || r.imageOf() != first {
					t.Fatalf("%d rollbacks, and %s runs", n, r.imageOf())
				}
				r.stopsNothing(func() {
					r.want(doc)
					r.after(5 * time.Minute)
				})
			})
		})
	}
}

func TestAPodThatIsReplacedForAnyChangeStartsOnce(t *testing.T) {
	replaces := func(r *rig) { r.configure = func(c *config.Config) { c.UpdatePolicy = "Replace" } }
	for name, row := range map[string]struct {
		prepare func(*rig)
		doc     string
	}{
		"by the setting":    {replaces, follower("img:1")},
		"by its annotation": {func(*rig) {}, strings.Replace(follower("img:1"), "annotations: {", "annotations: {monopod.update: replace, ", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			liveWith(t, row.prepare, func(r *rig) {
				r.want(row.doc)
				r.after(30 * time.Minute)
				if n := r.Count("StartContainer"); n != 1 {
					t.Errorf("%d starts", n)
				}
			})
		})
	}
}

func TestAPodWithAnImageVolumeThatNothingMountsHasAHistory(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("vol:1")
		doc := func(image string) string {
			return follower(image, `volumes: [{name: v, image: {reference: "vol:1"}}]`)
		}
		r.want(doc("img:1"))
		r.after(5 * time.Minute)
		first := r.imageID()
		r.want(doc("img:2"))
		r.after(5 * time.Minute)
		r.mustGoBack("")
		r.after(time.Minute)
		r.runsID(first)
	})
}

func TestContainersWithOneTagComeToRunOneImage(t *testing.T) {
	live(t, func(r *rig) {
		doc := strings.Replace(manifest("web", "img:1"), "containers: [", `containers: [{name: b, imagePullPolicy: Always, image: "img:1"}, `, 1)
		r.want(doc)
		r.after(time.Minute)
		second := r.Republish("img:1")
		r.Exit("b", 1)
		r.after(time.Minute)
		if r.ranBy("b") != second {
			t.Fatal(r.ranBy("b"))
		}
		r.want(strings.Replace(doc, "metadata: {", "metadata: {annotations: {monopod.follow-images: 1h}, ", 1))
		r.after(3 * time.Hour)
		if b, c := r.ranBy("b"), r.ranBy("c"); b != second || c != second {
			r.Errorf("b runs %s and c %s, want %s", b, c, second)
		}
	})
}

func TestARollbackToAVersionThatDidNotFollowItsTagRunsItsImage(t *testing.T) {
	live(t, func(r *rig) {
		old := healthy("30s", manifest("web", "img:1"))
		r.want(old)
		r.after(5 * time.Minute)
		first := r.imageOf()
		r.want(follower("img:1"))
		r.after(15 * time.Minute)
		second := r.Republish("img:1")
		r.after(80 * time.Minute)
		r.runsMoved(second, 2)
		r.mustGoBack(r.hashOf(old))
		r.after(5 * time.Minute)
		if now := r.imageOf(); now != first {
			t.Errorf("%s, want %s", now, first)
		}
	})
}

func TestWhatRunsByAnIDWithoutAlgorithmStartsAgain(t *testing.T) {
	liveWith(t, func(r *rig) { r.LikeCRIO() }, func(r *rig) {
		r.want(follower("img:1"))
		r.after(15 * time.Minute)
		r.Exit("c", 1)
		r.after(time.Minute)
		r.expect("default/web-n/c")
	})
}

func TestAnImageVolumeThatIsNeverPulledIsNotPulledToFollowIt(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("vol:1")
		r.want(strings.Replace(withImageVolume("vol:1", "Never"), "annotations: {", "annotations: {monopod.follow-images: 1h, ", 1))
		r.after(3 * time.Hour)
		for _, c := range r.Calls() {
			if q, is := c.Request.(*rt.PullImageRequest); is && strings.Contains(q.Image.Image, "vol:1") {
				t.Fatalf("%s is pulled", q.Image.Image)
			}
		}
	})
}

// ranBy returns the image that the running container of this name has.
func (r *rig) ranBy(name string) string {
	r.Helper()
	for _, c := range r.Containers() {
		if c.Name == name && c.State == rt.ContainerState_CONTAINER_RUNNING {
			return c.Config.Image.Image
		}
	}
	return "none"
}
