package status

// Restart says what a restart that was asked for does.
type Restart struct {
	Pod string `json:"pod"` // namespace/name
	UID string `json:"uid"`
	// Replaces has the containers that are restarted: by name the id of the
	// attempt that they replace, "" where nothing ran.
	Replaces map[string]string `json:"replaces"`
}

// Refusal is why something that was asked for is not done, as a sentence.
type Refusal struct {
	Unknown bool // what it is about is not there
	Why     string
}

func (r *Refusal) Error() string { return r.Why }

// Forgotten says that a pod or an object goes whose removal was accepted by hand.
type Forgotten struct {
	Pod    string `json:"pod,omitempty"`    // namespace/name
	Object string `json:"object,omitempty"` // such as "ConfigMap default/app"
}
