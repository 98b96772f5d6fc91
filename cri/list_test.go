package cri

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/grpc/mem"
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
func receive(t testing.TB, l *List[rt.Container], data []byte, size int) *Changes[rt.Container] {
	d := &listDecoder[rt.Container, *rt.Container]{changes: &Changes[rt.Container]{list: l}}
	if err := d.Unmarshal(pieces(data, size), nil); err != nil {
		t.Fatal(err)
	}
	return d.changes
}

func TestAListIsWhatProtobufReads(t *testing.T) {
	want := nodeOf(5)
	for _, size := range []int{1, 100, 16 << 10} {
		got := receive(t, &List[rt.Container]{}, wire(t, want), size).Added
		if !slices.EqualFunc(got, want.Containers, func(a, b *rt.Container) bool { return proto.Equal(a, b) }) {
			t.Errorf("in pieces of %d: %v", size, got)
		}
	}
}

func TestAListInAnotherOrderHasNotChanged(t *testing.T) {
	var l List[rt.Container]
	r := nodeOf(5)
	r.Containers[0].State = rt.ContainerState_CONTAINER_EXITED
	first := receive(t, &l, wire(t, r), 100)
	if !first.Any || len(first.Added) != 5 {
		t.Fatalf("the first answer: %+v", first)
	}
	first.Keep()
	slices.Reverse(r.Containers)
	if c := receive(t, &l, wire(t, r), 1000); c.Any || len(c.Added)+len(c.Gone) > 0 {
		t.Errorf("the same in another order: %+v", c)
	}
	for _, row := range []struct {
		name        string
		change      func()
		added, gone int
	}{
		{"a state", func() { r.Containers[2].State = rt.ContainerState_CONTAINER_EXITED }, 1, 1},
		{"two swap states", func() {
			r.Containers[1].State = rt.ContainerState_CONTAINER_EXITED
			r.Containers[0].State = rt.ContainerState_CONTAINER_RUNNING
		}, 2, 2},
		{"one that is gone", func() { r.Containers = r.Containers[1:] }, 0, 1},
		{"one that is new", func() { r.Containers = append(r.Containers, nodeOf(6).Containers[5]) }, 1, 0},
		{"none", func() { r.Containers = nil }, 0, 5},
		{"one that was twice", func() { r.Containers = append(r.Containers, r.Containers[0]) }, 0, 0},
		{"a new one that is twice", func() { r.Containers = append(r.Containers, nodeOf(6).Containers[5], nodeOf(6).Containers[5]) }, 1, 0},
	} {
		r = nodeOf(5)
		r.Containers[0].State = rt.ContainerState_CONTAINER_EXITED
		row.change()
		if c := receive(t, &l, wire(t, r), 1000); !c.Any || len(c.Added) != row.added || len(c.Gone) != row.gone {
			t.Errorf("%s: changed %v, %d added, %d gone", row.name, c.Any, len(c.Added), len(c.Gone))
		}
	}
}

func TestWhatIsListedAsBeforeIsNotDecodedAgain(t *testing.T) {
	var l List[rt.Container]
	r := nodeOf(5)
	first := receive(t, &l, wire(t, r), 1000)
	first.Keep()
	r.Containers[2].State = rt.ContainerState_CONTAINER_EXITED
	next := receive(t, &l, wire(t, r), 1000)
	if len(next.Added) != 1 || !proto.Equal(next.Added[0], r.Containers[2]) || len(next.Gone) != 1 || next.Gone[0] != first.Added[2] {
		t.Errorf("of one that has changed: %v in place of %v", next.Added, next.Gone)
	}
	next.Keep()
	if len(l.known) != 5 {
		t.Errorf("%d are known", len(l.known))
	}
	r.Containers = r.Containers[1:]
	last := receive(t, &l, wire(t, r), 1000)
	if len(last.Gone) != 1 || last.Gone[0] != first.Added[0] || len(last.Added) > 0 {
		t.Errorf("once another is gone: %v added, %v gone", last.Added, last.Gone)
	}
}

// Whatever answers come, and whichever of them are kept: the changes make each of the one before.
func TestChangesMakeTheNextAnswerOfTheOneBefore(t *testing.T) {
	var l List[rt.Container]
	random, there := rand.New(rand.NewPCG(1, 2)), map[*rt.Container]bool{}
	for range 500 {
		r := nodeOf(8)
		for _, c := range r.Containers {
			c.State = rt.ContainerState(random.IntN(3))
		}
		r.Containers = r.Containers[:random.IntN(9)]
		c := receive(t, &l, wire(t, r), 1000)
		if random.IntN(3) == 0 {
			continue // the other call had an error
		}
		c.Keep()
		for _, one := range c.Gone {
			if !there[one] {
				t.Fatal("gone is what was not there")
			}
			delete(there, one)
		}
		for _, one := range c.Added {
			there[one] = true
		}
		if len(there) != len(r.Containers) || len(l.known) != len(there) {
			t.Fatalf("%d containers, %d remembered, of %d", len(there), len(l.known), len(r.Containers))
		}
		for one := range there {
			if !slices.ContainsFunc(r.Containers, func(c *rt.Container) bool { return proto.Equal(c, one) }) {
				t.Fatalf("%v is not in the answer", one)
			}
		}
	}
}

func TestAnAnswerThatIsNotKeptIsNotRemembered(t *testing.T) {
	var l List[rt.Container]
	_ = receive(t, &l, wire(t, nodeOf(2)), 1000)
	if c := receive(t, &l, wire(t, nodeOf(2)), 1000); !c.Any || len(c.Added) != 2 {
		t.Error("the next one counts as the same")
	}
}

func TestAListThatIsCutOffIsRefused(t *testing.T) {
	data, err := proto.Marshal(nodeOf(1))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(data); n++ {
		d := &listDecoder[rt.Container, *rt.Container]{changes: &Changes[rt.Container]{list: &List[rt.Container]{}}}
		if err := d.Unmarshal(pieces(data[:n], 50), nil); err == nil {
			t.Fatalf("%d of %d bytes are taken for an answer", n, len(data))
		}
	}
}

// An answer costs no more memory for many containers than for few, also if one has changed.
func TestAnAnswerAllocatesWhatHasChanged(t *testing.T) {
	for what, state := range map[string]rt.ContainerState{"the same": rt.ContainerState_CONTAINER_RUNNING, "one other": rt.ContainerState_CONTAINER_EXITED} {
		var l List[rt.Container]
		r, at := nodeOf(500), 0
		var answers []mem.BufferSlice
		for range 2 {
			answers = append(answers, pieces(wire(t, r), 16<<10))
			r.Containers[250].State = state
		}
		look := func() {
			d := &listDecoder[rt.Container, *rt.Container]{changes: &Changes[rt.Container]{list: &l}}
			if err := d.Unmarshal(answers[at%2], nil); err != nil {
				t.Fatal(err)
			}
			d.changes.Keep()
			at++
		}
		look()
		if n := testing.AllocsPerRun(20, look); n > 150 {
			t.Errorf("%s: %.0f allocations for 500 containers", what, n)
		}
	}
}

func BenchmarkListOf100(b *testing.B) {
	data := pieces(wire(b, nodeOf(100)), 16<<10)
	b.Run("the same", func(b *testing.B) {
		var l List[rt.Container]
		for b.Loop() {
			d := &listDecoder[rt.Container, *rt.Container]{changes: &Changes[rt.Container]{list: &l}}
			if err := d.Unmarshal(data, nil); err != nil {
				b.Fatal(err)
			}
			d.changes.Keep()
		}
		b.ReportAllocs()
	})
	b.Run("the usual codec", func(b *testing.B) {
		for b.Loop() {
			if err := proto.Unmarshal(data.Materialize(), &rt.ListContainersResponse{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
	})
}
