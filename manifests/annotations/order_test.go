package annotations_test

import (
	"fmt"
	"testing"
	"time"

	"monopod/manifests/annotations"
	"monopod/manifests/documents/documenttest"
)

var (
	node1    = documenttest.Node1
	podYAML  = documenttest.PodYAML
	accepted = documenttest.Accepted
)

func TestOrderOf(t *testing.T) {
	p := accepted(t, node1, "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: prod, annotations: {monopod.start-after: 'db, x/cache', monopod.start-after-timeout: 1m30s}}\nspec: {containers: [{name: c, image: i}]}\n")
	o := annotations.OrderOf(p.Pod)
	if got := fmt.Sprint(o.After); got != "[prod/db x/cache]" || o.Timeout != 90*time.Second {
		t.Errorf("order %+v", o)
	}
	if o := annotations.OrderOf(accepted(t, node1, podYAML("a")).Pod); len(o.After) > 0 {
		t.Errorf("order %+v", o)
	}
}
