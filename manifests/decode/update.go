package decode

// AnnotationUpdate is the annotation by which a pod says when its former version stops:
// UpdatePrepare, once all is there that this one needs, or UpdateStopFirst, at once.
const (
	AnnotationUpdate = "monopod.update"
	UpdatePrepare    = "prepare"
	UpdateStopFirst  = "stop-first"
)
