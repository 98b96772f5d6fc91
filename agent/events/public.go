package events

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/message"
)

// annPublic is the annotation of an event in the file with what clients other than root may read
// of its message. Only root reads the message of an event without one, such as that of an older
// agent.
const annPublic = "monopod.public"

// view is a reader's request and access.
type view struct {
	pod    string // "namespace/name"; "": all
	public bool   // without what only root may see
}

// has reports whether the reader gets the event. Events about pods and nodes are public; those
// about files name what only root may list.
func (v view) has(rec *record) bool {
	return rec.of(v.pod) && (!v.public || rec.about.Kind == "Pod" || rec.about.Kind == "Node")
}

// of returns the event as the reader gets it.
func (v view) of(rec *record) record {
	out := *rec
	if v.public {
		out.message = rec.public
	}
	return out
}

// mark adds the annotations that only the file has.
func (r *record) mark(e *v1.Event) {
	if r.public != message.Mark {
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, annPublic, r.public)
	}
}

// publicOf returns what clients other than root may read of a message, by the annotations of the
// event.
func publicOf(marks map[string]string, text string) string {
	public, marked := marks[annPublic]
	if marked || text == "" {
		return public
	}
	return message.Mark
}
