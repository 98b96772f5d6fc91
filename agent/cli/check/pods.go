package check

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/objects"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/defaults"
)

// placed returns a problem with a pod's field. path is the file as the person gave it.
func placed(path string, p manifests.Placed, field, message string) status.Problem {
	at := p.At(field)
	return status.Problem{File: path, Line: at.Line, Column: at.Column, Pod: p.Key().String(), Field: at.Field, Message: message}
}

// report adds a problem with a pod's field to those of its file, in order of line.
func (v *Result) report(p *manifests.Pod, field, message string, warning bool) {
	path := v.From[p.Key().String()]
	problem := placed(path, manifests.Placed{Pod: p, At: v.at[p.Key()]}, field, message)
	problem.Warning = warning
	f := &v.Files[slices.IndexFunc(v.Files, func(f File) bool { return f.Path == path })]
	f.Problems = append(f.Problems, problem)
	sortByLine(f.Problems)
}

// CheckUIDs finds the pods with the uid of another pod, of which the agent would run one.
func (v *Result) CheckUIDs() {
	first := map[types.UID]*manifests.Pod{}
	for _, p := range v.Pods {
		if other, taken := first[p.UID]; taken {
			v.report(p, "metadata.uid", manifests.UIDTaken(other), false)
		} else {
			first[p.UID] = p
		}
	}
}

// CheckObjects reports references of pods to a ConfigMap, Secret or key that does not exist; more
// is the consequence.
func (v *Result) CheckObjects(more string, warning bool) {
	all := objects.NewSet(v.Objects)
	for _, p := range v.Pods {
		for _, m := range all.AllMissing(p.Pod) {
			v.report(p, m.Field, m.Text+more, warning)
		}
	}
}

// CheckReaders warns of the files of Secrets that others than their owner may read.
func (v *Result) CheckReaders() {
	for k := range v.Files {
		f := &v.Files[k]
		info, err := os.Stat(f.Path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f.Problems = append(f.Problems, manifests.SecretReaders(f.Path, info.Mode(), v.given[f.Path])...)
		sortByLine(f.Problems)
	}
}

// NotesOfFolders returns notes on folders in those that were checked, which the agent does not
// read.
func (v *Result) NotesOfFolders() (notes []status.Problem) {
	for _, dir := range v.folders {
		notes = append(notes, manifests.NotRead(dir)...)
	}
	return notes
}

// sortByLine sorts the problems of a file.
func sortByLine(all []status.Problem) {
	slices.SortStableFunc(all, func(a, b status.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// wanted is a port of the machine that a pod requests.
type wanted struct {
	defaults.HostPort
	by    *manifests.Pod
	field string
}

// checkPorts warns of pods that request a port of the machine which a pod before them requests:
// the agent admits one of them.
func (v *Result) checkPorts() {
	before := map[int32][]wanted{}
	for _, p := range v.Pods {
		for port, h := range defaults.HostPorts(&p.Spec) {
			w := wanted{h, p, port.Child(defaults.HostPortField(&p.Spec)).String()}
			other := slices.IndexFunc(before[h.Port], func(o wanted) bool { return o.by != p && o.Overlaps(h) })
			if other >= 0 {
				v.portTaken(w, before[h.Port][other])
			}
			before[h.Port] = append(before[h.Port], w)
		}
	}
}

func (v *Result) portTaken(w, first wanted) {
	key := first.by.Key()
	v.report(w.by, w.field, fmt.Sprintf(
		"%s port %d of the machine is wanted by %s too (%s:%d): the agent runs only one of the two pods; give one of them another port",
		w.Protocol, w.Port, key, v.From[key.String()], v.at[key](first.field).Line), true)
}
