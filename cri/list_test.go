package cri

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// nodeOf is the answer of a node with n containers.
func nodeOf(n int) *rt.ListContainersResponse {
	r := &rt.ListContainersResponse{}
	for k := range n {
		c := &rt.Container{Id: fmt.Sprintf("%064d", k), PodSandboxId: fmt.Sprintf("%064d", n+k), State: rt.ContainerState_CONTAINER_RUNNING, CreatedAt: int64(k),
			Metadata: &rt.ContainerMetadata{Name: "main", Attempt: uint32(k)}, Image: &rt.ImageSpec{Image: "img:1"}, Labels: map[string]string{}, Annotations: map[string]string{}}
		for j := range 8 {
			c.Labels[fmt.Sprintf("io.kubernetes.container.label%d", j)] = fmt.Sprintf("value %d of %d", j, k)
			c.Annotations[fmt.Sprintf("io.kubernetes.container.annotation%d", j)] = fmt.Sprintf("value %d of %d", j, k)
		}
		r.Containers = append(r.Containers, c)
	}
	return r
}

// wire encodes an answer, its maps in any order, with fields of a later runtime.
func wire(t testing.TB, r *rt.ListContainersResponse) []byte {
	data, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	data = protowire.AppendVarint(protowire.AppendTag(data, 7, protowire.VarintType), 300)
	return protowire.AppendString(protowire.AppendTag(data, 8, protowire.BytesType), "more")
}

// receive decodes an answer in pieces of a size.
func receive(t testing.TB, l *List[rt.Container], data []byte, size int, look bool) *listDecoder[rt.Container, *rt.Container] {
	d := &listDecoder[rt.Container, *rt.Container]{list: l, look: look}
	if err := d.Unmarshal(pieces(data, size), nil); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAListIsWhatProtobufReads(t *testing.T) {
	want := nodeOf(5)
	for _, size := range []int{1, 100, 16 << 10} {
		got := receive(t, &List[rt.Container]{}, wire(t, want), size, true).all
		if !slices.EqualFunc(got, want.Containers, func(a, b *rt.Container) bool { return proto.Equal(a, b) }) {
			t.Errorf("in pieces of %d: %v", size, got)
		}
	}
}

func TestAListInAnotherOrderHasNotChanged(t *testing.T) {
	var l List[rt.Container]
	r := nodeOf(5)
	r.Containers[0].State = rt.ContainerState_CONTAINER_EXITED
	if d := receive(t, &l, wire(t, r), 100, true); !d.changed() || len(d.all) != 5 || d.keep(nil) != nil {
		t.Fatalf("the first answer: %+v", d)
	}
	slices.Reverse(r.Containers)
	if d := receive(t, &l, wire(t, r), 1000, true); d.changed() || d.all != nil {
		t.Errorf("the same in another order: %d are decoded", len(d.all))
	}
	for name, change := range map[string]func(){
		"a state": func() { r.Containers[2].State = rt.ContainerState_CONTAINER_EXITED },
		"two swap states": func() {
			r.Containers[1].State = rt.ContainerState_CONTAINER_EXITED
			r.Containers[0].State = rt.ContainerState_CONTAINER_RUNNING
		},
		"one that is gone":   func() { r.Containers = r.Containers[1:] },
		"none":               func() { r.Containers = nil },
		"one that was twice": func() { r.Containers = append(r.Containers, r.Containers[0]) },
	} {
		r = nodeOf(5)
		r.Containers[0].State = rt.ContainerState_CONTAINER_EXITED
		change()
		if d := receive(t, &l, wire(t, r), 1000, true); !d.changed() || len(d.all) != len(r.Containers) {
			t.Errorf("%s: changed %v, %d are decoded", name, d.changed(), len(d.all))
		}
	}
}

func TestWhatIsListedAsBeforeIsNotDecodedAgain(t *testing.T) {
	var l List[rt.Container]
	r := nodeOf(5)
	first := receive(t, &l, wire(t, r), 1000, false)
	_ = first.keep(nil)
	r.Containers[2].State = rt.ContainerState_CONTAINER_EXITED
	next := receive(t, &l, wire(t, r), 1000, false)
	for k, c := range next.all {
		if same := c == first.all[k]; same == (k == 2) || !proto.Equal(c, r.Containers[k]) {
			t.Errorf("container %d: the same %v, %v", k, same, c)
		}
	}
	_ = next.keep(nil)
	if got := slices.Collect(maps.Values(l.known)); len(got) != 5 || slices.Contains(got, first.all[2]) {
		t.Error("what is not listed any more is kept")
	}
}

func TestAnAnswerThatIsRefusedIsNotRemembered(t *testing.T) {
	var l List[rt.Container]
	refused := errors.New("it lacks a name")
	if err := receive(t, &l, wire(t, nodeOf(2)), 1000, true).keep(refused); err != refused {
		t.Fatal(err)
	}
	if d := receive(t, &l, wire(t, nodeOf(2)), 1000, true); !d.changed() {
		t.Error("the next one counts as the same")
	}
}

func TestAListThatIsCutOffIsRefused(t *testing.T) {
	data, err := proto.Marshal(nodeOf(1))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(data); n++ {
		d := &listDecoder[rt.Container, *rt.Container]{list: &List[rt.Container]{}}
		if err := d.Unmarshal(pieces(data[:n], 50), nil); err == nil {
			t.Fatalf("%d of %d bytes are taken for an answer", n, len(data))
		}
	}
}

// An answer that has not changed costs no more memory for many containers than for few.
func TestALookAtTheSameAllocatesLittle(t *testing.T) {
	var l List[rt.Container]
	data := pieces(wire(t, nodeOf(500)), 16<<10)
	look := func() {
		d := &listDecoder[rt.Container, *rt.Container]{list: &l, look: true}
		if err := errors.Join(d.Unmarshal(data, nil), d.keep(nil)); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if n := testing.AllocsPerRun(20, look); n > 40 {
		t.Errorf("%.0f allocations for 500 containers", n)
	}
}

func BenchmarkListOf100(b *testing.B) {
	data := pieces(wire(b, nodeOf(100)), 16<<10)
	for name, look := range map[string]bool{"the same": true, "decoded by parts": false} {
		b.Run(name, func(b *testing.B) {
			var l List[rt.Container]
			for b.Loop() {
				d := &listDecoder[rt.Container, *rt.Container]{list: &l, look: look}
				if err := errors.Join(d.Unmarshal(data, nil), d.keep(nil)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
		})
	}
	b.Run("the usual codec", func(b *testing.B) {
		for b.Loop() {
			if err := proto.Unmarshal(data.Materialize(), &rt.ListContainersResponse{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
	})
}
