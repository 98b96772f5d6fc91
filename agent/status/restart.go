package status

// Restart is the result of a restart request.
type Restart struct {
	Pod string `json:"pod"` // namespace/name
	UID string `json:"uid"`
	// Replaces has the containers that are restarted: by name the id of the attempt that they
	// replace, "" if nothing ran.
	Replaces map[string]string `json:"replaces"`
}

// Refusal is why a request is refused, as a sentence.
type Refusal struct {
	Unknown bool // its object does not exist
	Why     string
}

func (r *Refusal) Error() string { return r.Why }

// Forgotten is the pod or object whose removal the owner has accepted.
type Forgotten struct {
	Pod    string `json:"pod,omitempty"`    // namespace/name
	Object string `json:"object,omitempty"` // such as "ConfigMap default/app"
}
