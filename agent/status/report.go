package status

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/decode"
	"monopod/manifests/poduid"
)

// TCPNotServed is how the report begins that the agent could not bind the TCP address of its endpoint.
const TCPNotServed = "the TCP address is not served"

// Manifests is the result of each manifest: accepted, refused and why, which version runs. It is
// the reporting part of a manifests.Snapshot.
type Manifests struct {
	Dir      string    `json:"dir,omitempty"`
	Dirs     []string  `json:"dirs,omitempty"`     // of several folders, the lowest first; Dir is the first of them
	Files    []File    `json:"files"`              // sorted by path
	Leaving  []File    `json:"leaving,omitempty"`  // gone, but their pods or objects are not; paths and names only
	Problems []Problem `json:"problems,omitempty"` // of the folder itself
	Settings []Problem `json:"settings,omitempty"` // of the agent's own settings, when they were read again
	Reports  []Problem `json:"reports,omitempty"`  // of the agent itself and of the status files; in memory only

	// UpdateStable is how long a version must stay ready to count as one that works; 0: the agent
	// does not report it.
	UpdateStable metav1.Duration `json:"updateStable,omitzero"`

	// List makes the Files, as far as they do not follow from the reported pods, when a report is
	// made. Any goroutine may call it, one at a time; nil: they are made.
	List func() []File `json:"-"`
	// Judge adds to a file's Versions and fills in its State, likewise; nil: they are filled in.
	Judge func(*File) `json:"-"`
}

// Folders returns the folders of the manifests, the lowest first.
func (m *Manifests) Folders() []string {
	if len(m.Dirs) == 0 && m.Dir != "" {
		return []string{m.Dir}
	}
	return m.Dirs
}

// Base returns the folder to which the paths of files are shown relative; "": there are several.
func (m *Manifests) Base() string {
	if len(m.Dirs) > 0 {
		return ""
	}
	return m.Dir
}

// File is one manifest file.
type File struct {
	Path     string    `json:"path"`
	Pods     []string  `json:"pods,omitempty"` // namespace/name of the pods it gives
	Held     bool      `json:"held,omitempty"` // an earlier version runs on, the present one was refused
	Problems []Problem `json:"problems,omitempty"`
	MaskedBy string    `json:"maskedBy,omitempty"` // the file of a higher folder because of which this one is not read

	State    State     `json:"state,omitempty"`    // the worst of its versions, or of the file itself
	Since    time.Time `json:"since,omitzero"`     // its present content has it
	SHA256   string    `json:"sha256,omitempty"`   // of what was read, in hex
	Versions []Version `json:"versions,omitempty"` // of the pods that the file names, sorted by pod
	Objects  []Object  `json:"objects,omitempty"`  // the ConfigMaps and Secrets that it names, sorted by kind and name
}

// Object is the result of a ConfigMap or Secret of a file. Values are never shown.
type Object struct {
	Kind   string   `json:"kind"`
	Name   string   `json:"name"` // namespace/name
	State  State    `json:"state,omitempty"`
	Reason string   `json:"reason,omitempty"` // why it is not accepted; while File.Held is set, the version before counts
	Line   int      `json:"line,omitempty"`   // of the file, to which Reason belongs; 0: unknown
	Column int      `json:"column,omitempty"`
	By     string   `json:"by,omitempty"`   // the file that gives a superseded object
	Pods   []string `json:"pods,omitempty"` // namespace/name of those that refer to it
}

// State is the result of a manifest, or of one pod in it.
type State string

// The states, the better ones first.
const (
	Accepted   State = "accepted"   // it runs, or is being started
	Waiting    State = "waiting"    // it is accepted and does not run yet, for Reason
	Superseded State = "superseded" // another file gives the pod
	Masked     State = "masked"     // a file of its name in a higher folder masks it
	Unread     State = "unread"     // it was not read yet
	Rejected   State = "rejected"   // it is wrong, for Reason
)

// states are the states in their order.
var states = []State{"", Accepted, Waiting, Superseded, Masked, Unread, Rejected}

// Worse returns the worse one of two states.
func Worse(a, b State) State {
	if slices.Index(states, b) > slices.Index(states, a) {
		return b
	}
	return a
}

// Version is the result of one pod of a file. The hashes are those of pods' annotation
// kubernetes.io/config.hash.
type Version struct {
	Pod     string             `json:"pod"` // namespace/name
	State   State              `json:"state"`
	Reason  string             `json:"reason,omitempty"` // why it is not accepted
	Line    int                `json:"line,omitempty"`   // of the file, to which Reason belongs; 0: unknown
	Column  int                `json:"column,omitempty"`
	Since   time.Time          `json:"since,omitzero"`    // this content has the state
	Hash    poduid.ContentHash `json:"hash,omitempty"`    // of the pod in the file; "": it is wrong
	Running poduid.ContentHash `json:"running,omitempty"` // of the pod whose containers exist; "": none do
	Waiting poduid.ContentHash `json:"waiting,omitempty"` // Hash, if this version waits
	By      string             `json:"by,omitempty"`      // the file that gives a superseded pod
	Trial   Trial              `json:"trial,omitempty"`   // whether it works, of a version that is rolled back if it does not
	Output  string             `json:"output,omitempty"`  // what its containers wrote last, if it was rolled back; each line with its container
}

// Trial is the result of a version that is rolled back unless it works. A former agent reports
// none.
type Trial string

const (
	TrialOn     Trial = "on"     // not known yet
	TrialPassed Trial = "passed" // it works
	TrialFailed Trial = "failed" // it was rolled back, or is about to be
)

// ReasonStopped is the status reason of a pod that the owner has stopped.
const ReasonStopped = "Stopped"

// AnnProblems is the annotation of a reported pod with its problems beside its status, as a JSON
// list of lines.
const AnnProblems = "monopod.problems"

// AnnHeld is the annotation of a pod or node that is served while the owner holds it: why, and
// until when.
const AnnHeld = "monopod.held"

// AnnPulls is the annotation of a reported pod with the images for which it waits, as a JSON list
// of Pull.
const AnnPulls = "monopod.pulls"

// Pull is an image that is missing. Its description is made when it is read, as it changes with
// time.
type Pull struct {
	Container string    `json:"container,omitempty"` // that waits for it; "": another version of the pod does
	Text      string    `json:"text"`                // which image, and why it is missing, in words, as in problems and messages
	Since     time.Time `json:"since,omitzero"`      // since when it is pulled, or waits for other pulls; zero: it cannot be pulled
	Next      time.Time `json:"next,omitzero"`       // the next try of one that cannot be pulled; in the past: it is in progress
}

// SetPulls writes the pod's annotation; without pulls it has none.
func SetPulls(p *v1.Pod, all []Pull) {
	if len(all) == 0 {
		return
	}
	text, err := json.Marshal(all)
	if err != nil {
		return
	}
	p.Annotations = maps.Clone(p.Annotations)
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, AnnPulls, string(text))
}

// PullsOf returns the pulls of a reported pod.
func PullsOf(p *v1.Pod) (all []Pull) {
	if json.Unmarshal([]byte(p.Annotations[AnnPulls]), &all) != nil {
		return nil
	}
	return all
}

// AnnStarts is the annotation of a reported pod with the times at which its crashed containers
// start again, as a JSON object of moments by container.
const AnnStarts = "monopod.starts"

// SetStarts writes the pod's annotation; without starts it has none.
func SetStarts(p *v1.Pod, next map[string]time.Time) {
	if len(next) == 0 {
		return
	}
	text, err := json.Marshal(next)
	if err != nil {
		return
	}
	p.Annotations = maps.Clone(p.Annotations)
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, AnnStarts, string(text))
}

// StartsOf returns the starts of a reported pod.
func StartsOf(p *v1.Pod) (next map[string]time.Time) {
	if json.Unmarshal([]byte(p.Annotations[AnnStarts]), &next) != nil {
		return nil
	}
	return next
}

// WithoutReport returns a copy of a reported pod without the annotations of the report.
func WithoutReport(reported *v1.Pod) *v1.Pod {
	p := reported.DeepCopy()
	for _, name := range Annotations {
		delete(p.Annotations, name)
	}
	return p
}

// Annotations are those of reported pods that no manifest gave.
var Annotations = []string{AnnProblems, AnnHeld, AnnPulls, AnnStarts}

// SetProblems writes the lines to the pod's annotation; without lines it has none.
func SetProblems(p *v1.Pod, lines []string) {
	_, had := p.Annotations[AnnProblems]
	if len(lines) == 0 && !had {
		return
	}
	p.Annotations = maps.Clone(p.Annotations)
	delete(p.Annotations, AnnProblems)
	if len(lines) == 0 {
		return
	}
	if text, err := json.Marshal(lines); err == nil {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, AnnProblems, string(text))
	}
}

// ProblemsOf returns the problems of a reported pod beside its status.
func ProblemsOf(p *v1.Pod) []string {
	var lines []string
	if json.Unmarshal([]byte(p.Annotations[AnnProblems]), &lines) != nil {
		return nil
	}
	return lines
}

// Problem is one thing wrong with a manifest.
type Problem = decode.Problem

// Runtime is whether the container runtime answers, and since when.
type Runtime struct {
	Up       bool      `json:"up"`
	Endpoint string    `json:"endpoint,omitempty"` // such as unix:///run/containerd/containerd.sock
	Name     string    `json:"name,omitempty"`
	Version  string    `json:"version,omitempty"`
	Error    string    `json:"error,omitempty"` // why it is down
	Since    time.Time `json:"since,omitzero"`
}
