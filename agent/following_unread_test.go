package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
)

func TestWhatFailedIsNotTriedAgainAfterAManifestThatCouldNotBeRead(t *testing.T) {
	const withInit = `initContainers: [{name: i, image: "side:1"}]`
	for name, row := range map[string]struct {
		doc   string
		edits func(doc string) string // nil: its tag moves
		of    string                  // the image that becomes another one
	}{
		"the tag of an init container":      {follower("img:1", withInit), nil, "side:1"},
		"the tag of a container":            {follower("img:1"), nil, "img:1"},
		"an edit of a pod that follows":     {follower("img:1"), func(doc string) string { return strings.Replace(doc, "img:1", "img:2", 1) }, "img:2"},
		"not followed, an init container":   {watched("img:1", withInit), func(doc string) string { return strings.Replace(doc, "side:1", "side:2", 1) }, "side:2"},
		"not followed, a regular container": {watched("img:1"), func(doc string) string { return strings.Replace(doc, "img:1", "img:2", 1) }, "img:2"},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.AddImage("side:1", "side:2")
				idOf := func(name string) string {
					i, err := cri.New(r.Conn()).Image(context.Background(), &rt.ImageSpec{Image: name})
					noErr(t, err)
					return i.Id
				}
				r.Program(idOf("side:1"), critest.Exits(0))
				r.want(row.doc)
				r.after(15 * time.Minute)
				doc := row.doc
				if row.edits != nil {
					doc = row.edits(doc)
					r.Program(idOf(row.of), critest.Exits(1))
					r.want(doc)
				} else {
					r.Program(r.Republish(row.of), critest.Exits(1))
				}
				r.after(80 * time.Minute)
				if n := len(r.rollbacks()); n != 1 {
					t.Fatalf("%d rollbacks", n)
				}
				r.expect("default/web-n/c")
				r.kill()
				r.start()
				r.offers <- manifests.Snapshot{Pods: r.known}
				r.after(time.Minute)
				r.stopsNothing(func() {
					r.want(doc)
					r.after(5 * time.Minute)
				})
				if n := len(r.rollbacks()); n != 0 {
					t.Errorf("%d more rollbacks", n)
				}
			})
		})
	}
}

func TestARollbackByRequestStaysAfterAManifestThatCouldNotBeRead(t *testing.T) {
	for name, doc := range map[string]string{"follows": follower("img:1"), "does not follow": watched("img:1")} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(doc)
				r.after(15 * time.Minute)
				first := r.imageOf()
				next := strings.Replace(doc, "img:1", "img:2", 1)
				r.want(next)
				r.after(5 * time.Minute)
				r.mustGoBack("")
				r.after(5 * time.Minute)
				r.kill()
				r.start()
				r.offers <- manifests.Snapshot{Pods: r.known}
				r.after(time.Minute)
				r.want(next)
				r.after(5 * time.Minute)
				if now := r.imageOf(); now != first {
					t.Errorf("%s runs, want %s", now, first)
				}
			})
		})
	}
}
