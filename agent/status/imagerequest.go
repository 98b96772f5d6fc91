package status

// RemovedImages are images that a request has removed, or would remove.
type RemovedImages struct {
	Images []RemovedImage `json:"images"`
	Failed []string       `json:"failed,omitempty"` // which images the runtime does not remove, and why
	More   bool           `json:"more,omitempty"`   // its time was over before it had tried all: another request continues
}

// RemovedImage is one of them.
type RemovedImage struct {
	Name string `json:"name"` // or its id, if it has none
	Size uint64 `json:"size"` // bytes, as the runtime counts them
}

// PulledImage is the state of a pull that the owner requested.
type PulledImage struct {
	Done bool `json:"done"` // false: it goes on, and a request for the same image waits on
}
