package status

import "time"

// History is what is known of the versions of a pod.
type History struct {
	Pod      string        `json:"pod"` // namespace/name
	Versions []PastVersion `json:"versions"`
}

// PastVersion is a version of a pod that was ready, runs, or is in its manifest.
type PastVersion struct {
	Hash       string            `json:"hash"`
	File       string            `json:"file"`
	Images     []string          `json:"images"`               // of its containers and volumes, as named
	Digests    map[string]string `json:"digests,omitempty"`    // of the images that it ran, by container, and by "volume/" and the volume
	ReadySince *time.Time        `json:"readySince,omitempty"` // when it was let start last; nil: it was not ready, or not for long enough
	LastReady  *time.Time        `json:"lastReady,omitempty"`  // nil: it is ready now, or that is not known
	Ready      bool              `json:"ready,omitempty"`      // it is now
	Running    bool              `json:"running,omitempty"`    // it is let run
	Manifest   bool              `json:"manifest,omitempty"`   // the manifest gives it
	RolledBack string            `json:"rolledBack,omitempty"` // why it was rolled back
	ComesBack  bool              `json:"comesBack,omitempty"`  // in place of that one, as soon as it can
}
