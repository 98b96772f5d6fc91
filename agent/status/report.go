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

// Manifests says what became of each manifest: accepted, refused and why,
// which version runs. It is the reporting part of a manifests.Snapshot.
type Manifests struct {
	Dir      string    `json:"dir,omitempty"`
	Files    []File    `json:"files"`              // sorted by path
	Leaving  []File    `json:"leaving,omitempty"`  // those that are gone, while their pods or objects are not; paths and names alone
	Problems []Problem `json:"problems,omitempty"` // of the folder itself
	Settings []Problem `json:"settings,omitempty"` // of the agent's own settings, when they were read again
	Reports  []Problem `json:"reports,omitempty"`  // of the agent itself and of the status files; in memory only

	// UpdateStable is how long a version must stay ready to count as one that works; 0: the agent
	// does not say.
	UpdateStable metav1.Duration `json:"updateStable,omitzero"`

	// Judge fills in a file's State and Versions as far as they do not follow from the
	// reported pods, when the report is made. Any goroutine may call it; nil: they are
	// filled in.
	Judge func(*File) `json:"-"`
}

// File is one manifest file.
type File struct {
	Path     string    `json:"path"`
	Pods     []string  `json:"pods,omitempty"` // namespace/name of the pods it gives
	Held     bool      `json:"held,omitempty"` // an earlier version runs on, the present one was refused
	Problems []Problem `json:"problems,omitempty"`

	State    State     `json:"state,omitempty"`    // the worst of its versions, or of the file itself
	Since    time.Time `json:"since,omitzero"`     // these bytes have it
	SHA256   string    `json:"sha256,omitempty"`   // of what was read, in hex
	Versions []Version `json:"versions,omitempty"` // of the pods that the file names, sorted by pod
	Objects  []Object  `json:"objects,omitempty"`  // the ConfigMaps and Secrets that it names, sorted by kind and name
}

// Object is what became of a ConfigMap or Secret of a file. Values are never told.
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

// State is what became of a manifest, or of one pod in it.
type State string

// The states, the better ones first.
const (
	Accepted   State = "accepted"   // it runs, or is being started
	Waiting    State = "waiting"    // it is accepted and does not run yet, for Reason
	Superseded State = "superseded" // another file gives the pod
	Unread     State = "unread"     // it was not read yet
	Rejected   State = "rejected"   // it is wrong, for Reason
)

// states are the states in their order.
var states = []State{"", Accepted, Waiting, Superseded, Unread, Rejected}

// Worse returns the worse one of two states.
func Worse(a, b State) State {
	if slices.Index(states, b) > slices.Index(states, a) {
		return b
	}
	return a
}

// Version is what became of one pod of a file. The hashes are those of pods'
// annotation kubernetes.io/config.hash.
type Version struct {
	Pod     string             `json:"pod"` // namespace/name
	State   State              `json:"state"`
	Reason  string             `json:"reason,omitempty"` // why it is not accepted
	Line    int                `json:"line,omitempty"`   // of the file, to which Reason belongs; 0: unknown
	Column  int                `json:"column,omitempty"`
	Since   time.Time          `json:"since,omitzero"`    // this content has the state
	Hash    poduid.ContentHash `json:"hash,omitempty"`    // of the pod in the file; "": it is wrong
	Running poduid.ContentHash `json:"running,omitempty"` // of the pod whose containers are there; "": none are
	Waiting poduid.ContentHash `json:"waiting,omitempty"` // Hash, if this version waits
	By      string             `json:"by,omitempty"`      // the file that gives a superseded pod
	Trial   Trial              `json:"trial,omitempty"`   // whether it works, of a version that gives way if it does not
	Output  string             `json:"output,omitempty"`  // what its containers wrote last, if it gave way; lines with the container before them
}

// Trial is what became of a version that gives way to the one before unless it works. A former
// agent reports none.
type Trial string

const (
	TrialOn     Trial = "on"     // it is not known yet
	TrialPassed Trial = "passed" // it works
	TrialFailed Trial = "failed" // it gave way, or is about to
)

// ReasonStopped is the status reason of a pod that the owner has stopped.
const ReasonStopped = "Stopped"

// AnnProblems is the annotation of a reported pod that says what is wrong with it beside
// its status, as a JSON list of lines.
const AnnProblems = "monopod.problems"

// AnnHeld is the annotation of a pod or node that is served while the owner holds it: why,
// and until when.
const AnnHeld = "monopod.held"

// AnnPulls is the annotation of a reported pod that says for which images it waits, as a JSON list
// of Pull.
const AnnPulls = "monopod.pulls"

// Pull is an image that is not there. What is said of it is made of this when it is read, as time
// passes.
type Pull struct {
	Container string    `json:"container,omitempty"` // that waits for it; "": another version of the pod does
	Text      string    `json:"text"`                // which image, and why it is not there, in words, as they stand in problems and messages
	Since     time.Time `json:"since,omitzero"`      // since when it is pulled, or waits for other pulls; zero: it cannot be pulled
	Next      time.Time `json:"next,omitzero"`       // when one that cannot be pulled is tried again, or was: then that is under way
}

// SetPulls makes the pod's annotation say them; without any it has none.
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

// PullsOf returns what a reported pod says of them.
func PullsOf(p *v1.Pod) (all []Pull) {
	if json.Unmarshal([]byte(p.Annotations[AnnPulls]), &all) != nil {
		return nil
	}
	return all
}

// AnnStarts is the annotation of a reported pod that says when its containers that crash start
// again, as a JSON object of moments by container.
const AnnStarts = "monopod.starts"

// SetStarts makes the pod's annotation say them; without any it has none.
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

// StartsOf returns what a reported pod says of them.
func StartsOf(p *v1.Pod) (next map[string]time.Time) {
	if json.Unmarshal([]byte(p.Annotations[AnnStarts]), &next) != nil {
		return nil
	}
	return next
}

// WithoutReport returns a copy of a reported pod without what is reported of it in annotations.
func WithoutReport(reported *v1.Pod) *v1.Pod {
	p := reported.DeepCopy()
	for _, name := range Annotations {
		delete(p.Annotations, name)
	}
	return p
}

// Annotations are those of reported pods that no manifest gave.
var Annotations = []string{AnnProblems, AnnHeld, AnnPulls, AnnStarts}

// SetProblems makes the pod's annotation say the lines; without any it has none.
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
