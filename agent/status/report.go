package status

import (
	"time"

	"monopod/manifests/decode"
)

// Manifests says what became of each manifest: accepted, refused and why,
// which version runs. It is the reporting part of a manifests.Snapshot.
type Manifests struct {
	Dir      string    `json:"dir,omitempty"`
	Files    []File    `json:"files"`              // sorted by path
	Problems []Problem `json:"problems,omitempty"` // of the folder itself
	Settings []Problem `json:"settings,omitempty"` // of the agent's own settings, when they were read again
}

// File is one manifest file.
type File struct {
	Path     string    `json:"path"`
	Pods     []string  `json:"pods,omitempty"` // namespace/name of the pods it gives
	Held     bool      `json:"held,omitempty"` // an earlier version runs on, the present one was refused
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one thing wrong with a manifest.
type Problem = decode.Problem

// Runtime says whether the container runtime answers, and since when that has
// been so.
type Runtime struct {
	Up       bool      `json:"up"`
	Endpoint string    `json:"endpoint,omitempty"` // such as unix:///run/containerd/containerd.sock
	Name     string    `json:"name,omitempty"`
	Version  string    `json:"version,omitempty"`
	Error    string    `json:"error,omitempty"` // why it is down
	Since    time.Time `json:"since,omitzero"`
}
