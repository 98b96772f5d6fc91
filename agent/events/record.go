package events

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// record is an event as it is kept: a v1 Event is three times as large.
type record struct {
	about           v1.ObjectReference
	kind, reason    string // kind: Normal or Warning
	message         string
	public          string    // the part of message for clients other than root
	next            time.Time // when what failed is tried again; zero: not known
	count           int32
	first, last     time.Time
	notified        time.Time // when watchers were notified last
	stamp           int64     // makes its name; unique
	turn            uint64    // the order in which records changed last
	combined, dirty bool      // it stands for many messages; the file lacks its present state
}

// combinedPrefix starts the message of an event that stands for similar ones.
const combinedPrefix = "(combined from similar events): "

// event returns the record in the form of the API.
func (r *record) event(node string) *v1.Event {
	namespace := cmp.Or(r.about.Namespace, metav1.NamespaceDefault)
	name := r.about.Name[strings.LastIndexByte(r.about.Name, '/')+1:]
	e := &v1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", name, r.stamp), Namespace: namespace,
			CreationTimestamp: metav1.NewTime(r.first)},
		InvolvedObject: r.about, Reason: r.reason, Message: r.message, Type: r.kind, Count: r.count,
		FirstTimestamp: metav1.NewTime(r.first), LastTimestamp: metav1.NewTime(r.last),
		Source: v1.EventSource{Component: Component, Host: node}, ReportingController: Component, ReportingInstance: node,
	}
	if !r.next.IsZero() {
		e.Annotations = map[string]string{AnnNext: r.next.UTC().Format(time.RFC3339)}
	}
	return e
}

// AnnNext is the annotation of an event with the next try of what failed, as in RFC 3339.
const AnnNext = "monopod.next-try"

// NextOf returns when what failed is tried again; zero: the event does not have it.
func NextOf(e *v1.Event) time.Time {
	next, err := time.Parse(time.RFC3339, e.Annotations[AnnNext])
	if err != nil {
		return time.Time{}
	}
	return next
}

// recordOf is the reverse of event.
func recordOf(e *v1.Event) *record {
	r := &record{about: e.InvolvedObject, kind: e.Type, reason: e.Reason, message: e.Message, public: publicOf(e.Annotations, e.Message), count: max(e.Count, 1),
		next: NextOf(e), first: e.FirstTimestamp.Time, last: e.LastTimestamp.Time, combined: strings.HasPrefix(e.Message, combinedPrefix)}
	hex := e.Name[strings.LastIndexByte(e.Name, '.')+1:]
	if r.stamp, _ = strconv.ParseInt(hex, 16, 64); r.stamp == 0 {
		r.stamp = r.first.UnixNano()
	}
	return r
}

// of reports whether the record is about that pod, "namespace/name"; "": anything.
func (r *record) of(pod string) bool {
	return pod == "" || r.about.Kind == "Pod" && pod == r.about.Namespace+"/"+r.about.Name
}

// gap returns how far an event was from a time. The clock may have been set back since.
func (r *record) gap(now time.Time) time.Duration { return now.Sub(r.last).Abs() }

// byTurn sorts the latest last. Their times do not: a machine may start each boot with a clock that is
// behind those of before.
func byTurn(a, b record) int { return cmp.Compare(a.turn, b.turn) }

// PodRef is the object of events about a pod.
func PodRef(namespace, name, uid string) v1.ObjectReference {
	return v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: namespace, Name: name, UID: types.UID(uid)}
}

// NodeRef is the object of events about the node.
func NodeRef(name string) v1.ObjectReference {
	return v1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: name}
}

// FileRef is the object of events about a manifest.
func FileRef(path string) v1.ObjectReference { return v1.ObjectReference{Kind: "File", Name: path} }

// ContainerRef is the object of events about one of the pod's containers.
func ContainerRef(pod v1.ObjectReference, spec *v1.PodSpec, container string) v1.ObjectReference {
	list := "containers"
	for k := range spec.InitContainers {
		if spec.InitContainers[k].Name == container {
			list = "initContainers"
		}
	}
	pod.FieldPath = "spec." + list + "{" + container + "}"
	return pod
}

// ContainerOf returns the container that an event is about, "" if it is about none.
func ContainerOf(about *v1.ObjectReference) string {
	_, rest, _ := strings.Cut(about.FieldPath, "{")
	name, _, _ := strings.Cut(rest, "}")
	return name
}
