package cri

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// eventOf returns an event of a pod with labels, as CRI-O and containerd 2 send them.
func eventOf(labels map[string]string) *rt.ContainerEventResponse {
	return &rt.ContainerEventResponse{ContainerId: "c1", ContainerEventType: rt.ContainerEventType_CONTAINER_STOPPED_EVENT, CreatedAt: 7,
		PodSandboxStatus:   &rt.PodSandboxStatus{Id: "s1", Labels: labels},
		ContainersStatuses: []*rt.ContainerStatus{{Id: "c1", Labels: labels}, {Id: "c2", Labels: labels}}}
}

func encoded(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEventsOfOthersComeWithoutTheirPod(t *testing.T) {
	ours, theirs := eventOf(map[string]string{"instance": "i1"}), eventOf(map[string]string{"instance": "i2"})
	head := &rt.ContainerEventResponse{ContainerId: "c1", ContainerEventType: theirs.ContainerEventType, CreatedAt: 7}
	for _, row := range []struct {
		name, whole string
		event, want *rt.ContainerEventResponse
	}{
		{"of a pod with the label", "i1", ours, ours},
		{"of another client's pod", "i1", theirs, head},
		{"of any pod, without a text", "", theirs, theirs},
		{"without a pod", "i1", head, head},
	} {
		for _, size := range []int{1, 5, 1 << 10} {
			got := &rt.ContainerEventResponse{}
			err := eventCodec{protobuf(), row.whole}.Unmarshal(pieces(encoded(t, row.event), size), got)
			if err != nil || !proto.Equal(got, row.want) {
				t.Errorf("%s, in pieces of %d: %v, %v", row.name, size, got, err)
			}
		}
	}
}

func TestABrokenEventIsAnError(t *testing.T) {
	whole := encoded(t, eventOf(map[string]string{"instance": "i2"}))
	for _, data := range [][]byte{whole[:len(whole)-1], append(slices.Clone(whole), 0xff)} {
		err := eventCodec{protobuf(), "i1"}.Unmarshal(pieces(data, 1<<10), &rt.ContainerEventResponse{})
		if err == nil {
			t.Errorf("%d bytes are read", len(data))
		}
	}
}

func TestAnEventOfOthersCostsLittle(t *testing.T) {
	event := eventOf(map[string]string{"instance": "i2", "a": "b", "c": "d", "e": "f"})
	received := pieces(encoded(t, event), 1<<10)
	cost := func(whole string) float64 {
		return testing.AllocsPerRun(10, func() {
			if err := (eventCodec{protobuf(), whole}).Unmarshal(received, &rt.ContainerEventResponse{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if theirs, ours := cost("i1"), cost("i2"); theirs > 10 || ours < 30 {
		t.Errorf("%v allocations, and %v of an event of ours", theirs, ours)
	}
}
