package desired

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"monopod/manifests"
)

func TestAVersionArrivesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(image string) *manifests.Pod {
			text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: %q}]}", image)
			pods, _ := manifests.Decode("/m/a.yaml", []byte(text), manifests.Options{NodeName: "n"})
			return pods[0]
		}
		added := 0
		d := &Pods{New: func(manifests.Key) { added++ }}
		began, one, two := time.Now(), read("img:1"), read("img:2")
		d.Take([]*manifests.Pod{one})
		time.Sleep(time.Hour)
		d.Take([]*manifests.Pod{read("img:1")}) // the same, read again
		if at := d.Of(one.Key()).At; !at.Equal(began) {
			t.Errorf("it came at %s", at)
		}
		d.Take([]*manifests.Pod{two})
		if at := d.Of(two.Key()).At; !at.Equal(time.Now()) {
			t.Errorf("another version came at %s", at)
		}
		if names := d.Names(); len(names) != 1 || !names[one.Key().String()] || added != 1 {
			t.Errorf("wanted are %v, %d added", names, added)
		}
		d.Take(nil)
		if len(d.all)+len(d.Names()) != 0 || d.Has(one.Key()) {
			t.Errorf("left: %v", d.all)
		}
	})
}
