package status

import (
	"fmt"
	"time"
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

// Problem is one thing wrong with a manifest. It has the fields of
// decode.Problem, so that one converts to the other.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // from 1; 0: unknown
	Column  int    `json:"column,omitempty"` // from 1; 0: unknown
	Pod     string `json:"pod,omitempty"`    // namespace/name, if known
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"` // the pod runs all the same
}

// Error returns "file:line:column: field: message", leaving out unknown parts.
func (p Problem) Error() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
		if p.Column > 0 {
			s += fmt.Sprintf(":%d", p.Column)
		}
	}
	if s != "" {
		s += ": "
	}
	if p.Field != "" {
		s += p.Field + ": "
	}
	return s + p.Message
}

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
