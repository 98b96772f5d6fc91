// Package annotations is what annotations of pods mean to monopod: the table of those that it
// knows, and, in a file for each purpose, how their values are read.
// manifests/validate/annotations.go checks them.
package annotations

import (
	"slices"
	"strings"

	"monopod/manifests/decode"
)

// Where an annotation of monopod's is set.
const (
	InManifests = "pods"           // the owner writes it into a pod's manifest
	OnLists     = "lists"          // the owner writes it into the List that a URL gives
	OnServed    = "served objects" // monopod sets it on pods, the node and events that it reports
	InRuntime   = "the runtime"    // monopod sets it on sandboxes and containers
)

// The annotations of a List that a manifest URL gives, which count if it is signed.
const (
	Serial = "monopod.serial"
	Node   = "monopod.node"
)

// Place is an object that carries annotations.
type Place struct{ Where, Title string }

// Places are all places of Annotation.On, each with its title on the documentation page.
func Places() []Place {
	return []Place{
		{InManifests, "In manifests of pods, and below `spec.template.metadata` of workloads"},
		{OnLists, "On the List that a manifest URL gives, with `manifestURLPublicKey`"},
		{OnServed, "On the pods and the node that monopod serves"},
		{InRuntime, "On sandboxes and containers in the runtime"},
	}
}

// Annotation is an annotation that monopod reads or writes.
type Annotation struct {
	Name   string
	On     string // where it is set
	About  string // what it is for, a sentence
	Values string // the allowed values, to follow "must be"
}

// All returns all annotations that monopod knows, sorted by name. Validation, the man page and
// docs/annotations.md use it.
func All() []Annotation { return slices.Clone(annotations) }

var annotations = []Annotation{
	{"monopod.backoff", InRuntime, "A container's crash-loop back-off, for the next agent.", "written by monopod"},
	{BackOffFirst, InManifests, "How long a container of the pod that crashed again waits before its second restart; the first is immediate.", "a duration from 100ms to 24h, such as 10s or 5m"},
	{BackOffMax, InManifests, "The longest such wait of the pod's containers.", "a duration from 100ms to 24h, such as 10s or 5m"},
	{"monopod.devices", OnServed, "The devices of the node of which the settings make resources, and which containers have them, for root only.", "written by monopod"},
	{"monopod.env-objects", InRuntime, "A digest of the objects that a container's variables were made of.", "written by monopod"},
	{FollowImages, InManifests, "How often it is checked whether a tag of the pod's images has moved; then the pod is updated to the image that the tag means now.", "a duration from 10m to 720h, such as 1h, or 0s for never"},
	{"monopod.held", OnServed, "Why the pod or the node is held, and until when.", "written by monopod"},
	{Job, InManifests, "How the containers of a Job's pod are run again: the restartPolicy of its template, and how often. monopod sets it on the pod of a Job.", "such as Never/6"},
	{"monopod.next-try", OnServed, "When what failed, of which an event tells, is tried again.", "written by monopod"},
	{Node, OnLists, "The only node that the list is for: another one refuses it.", "the name of a node"},
	{OnConfigChange, InManifests, "What happens to the pod's containers, or with `/` and a container's name behind it to that one, when a ConfigMap or Secret of their variables or volumes changes: they restart, their first process gets a signal, or a command runs in them.", reactionWords},
	{"monopod.problems", OnServed, "What is wrong with the pod beside its status.", "written by monopod"},
	{"monopod.public", OnServed, "What of an event's message anybody may read over TCP.", "written by monopod"},
	{"monopod.pulls", OnServed, "For which images the pod, or a new version of it, waits: why, since when, and when one is tried again.", "written by monopod"},
	{"monopod.starts", OnServed, "When containers of the pod that crash start again.", "written by monopod"},
	{RestartOnConfigChange, InManifests, "The short form of `monopod.on-config-change: restart`.", "true or false"},
	{"monopod.revision", InRuntime, "Which version of the pod a container was made for.", "written by monopod"},
	{Serial, OnLists, "Which of two lists is the later one: a node that has used a list refuses others up to its number.", "a whole number from 1 on, higher with each change"},
	{StartAfter, InManifests, "The pods that must be Ready, or have Succeeded, before the pod starts.", "names of pods, separated by commas: name, or namespace/name"},
	{StartAfterTimeout, InManifests, "After what time the pod starts all the same.", "a time above 0 with its unit, such as 90s or 5m"},
	{TagImages, OnServed, "Which images the tags mean that the pod follows.", "written by monopod"},
	{Update, InManifests, "Whether the pod runs on until its new version has what it needs, or is stopped first; or whether a change keeps of it what it can, or replaces it.", updateWords},
	{UpdateHealth, InManifests, "Within what time a new version must be ready that took the place of one that ran, else the former comes back.", "a duration from 1s to 24h, such as 30s, or 0s for no limit"},
	{UpdateLock, InManifests, "A file of the pod's; while it is there, the pod's own updates wait.", "the absolute path of a file below the mountPath of an emptyDir volume"},
}

// Named returns the annotation of a name that monopod knows.
func Named(name string) (a Annotation, known bool) {
	if container, is := strings.CutPrefix(name, OnConfigChange+"/"); is && container != "" {
		name = OnConfigChange
	}
	k := slices.IndexFunc(annotations, func(a Annotation) bool { return a.Name == name })
	if k < 0 {
		return Annotation{}, false
	}
	return annotations[k], true
}

// MeansMonopod reports whether a name belongs to monopod, in any case: monopod.update, Monopod.x or
// monopod/update.
func MeansMonopod(name string) bool {
	owner, _ := ownerOf(name)
	return strings.EqualFold(owner, "monopod")
}

// Misspelt returns the annotation of a place, such as InManifests, whose name differs from the given
// one only by a typing error in its first part: monopod.update for monpod.update. Any other name
// belongs to another program, however similar it is: known is false.
func Misspelt(name, on string) (meant string, known bool) {
	owner, rest := ownerOf(name)
	if len(owner) > len("monopod")+slips || decode.Distance(strings.ToLower(owner), "monopod") > slips {
		return "", false
	}
	a, known := Named("monopod" + rest)
	return a.Name, known && a.On == on && a.Name != name
}

// slips is the largest edit distance of a misspelt "monopod".
const slips = 2

// ownerOf returns the part of a name before its first dot or slash; "": it has neither.
func ownerOf(name string) (owner, rest string) {
	end := max(strings.IndexAny(name, "./"), 0)
	return name[:end], name[end:]
}

// Meant returns the annotation of a place that a misspelt name most likely means; "" if none is
// similar.
func Meant(name, on string) string {
	known := map[string]bool{}
	for _, a := range annotations {
		if a.On == on {
			known[a.Name] = true
		}
	}
	return decode.Nearest(name, known)
}
