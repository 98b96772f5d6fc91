package status

import (
	"encoding/json"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/decode"
)

// Manifests says what became of each manifest: accepted, refused and why,
// which version runs. It is the reporting part of a manifests.Snapshot.
type Manifests struct {
	Dir      string    `json:"dir,omitempty"`
	Files    []File    `json:"files"`              // sorted by path
	Problems []Problem `json:"problems,omitempty"` // of the folder itself
	Settings []Problem `json:"settings,omitempty"` // of the agent's own settings, when they were read again
	Reports  []Problem `json:"reports,omitempty"`  // of the status files; in memory only
}

// File is one manifest file.
type File struct {
	Path     string    `json:"path"`
	Pods     []string  `json:"pods,omitempty"` // namespace/name of the pods it gives
	Held     bool      `json:"held,omitempty"` // an earlier version runs on, the present one was refused
	Problems []Problem `json:"problems,omitempty"`
}

// ReasonStopped is the status reason of a pod that the owner has stopped.
const ReasonStopped = "Stopped"

// AnnProblems is the annotation of a reported pod that says what is wrong with it beside
// its status, as a JSON list of lines.
const AnnProblems = "monopod.problems"

// SetProblems makes the pod's annotation say the lines; without any it has none.
func SetProblems(p *v1.Pod, lines []string) {
	_, had := p.Annotations[AnnProblems]
	if len(lines) == 0 && !had {
		return
	}
	p.Annotations = maps.Clone(p.Annotations)
	if delete(p.Annotations, AnnProblems); len(lines) == 0 {
		return
	}
	if text, err := json.Marshal(lines); err == nil {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, AnnProblems, string(text))
	}
}

// ProblemsOf returns what a reported pod says beside its status.
func ProblemsOf(p *v1.Pod) []string {
	var lines []string
	if json.Unmarshal([]byte(p.Annotations[AnnProblems]), &lines) != nil {
		return nil
	}
	return lines
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
