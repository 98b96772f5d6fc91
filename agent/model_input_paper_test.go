package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// inputPods are the pods of the walk. Some have needs: cow and dog an object, gnu that
// ant is ready; elk has a claim, named as podman names those that need no document; fox is of a Job.
var inputPods = []string{"ant", "bee", "cow", "dog", "elk", "fox", "gnu"}

// inputNeeds are the documents without which a pod does not start.
var inputNeeds = map[string]string{"cow": "vault", "dog": "conf"}

// inputNames are of all documents.
var inputNames = append(slices.Clone(inputPods), "vault", "conf", "data")

// document is one in a file: a pod, or what pods need.
type document struct {
	name, image string // of an object its value
	label       int
}

// text is one flow mapping: cut anywhere, it is none.
func (d document) text(misspelt bool) string {
	more, main := "", ""
	switch d.name {
	case "vault":
		return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: vault}, stringData: {k: %q}}\n", d.image)
	case "conf":
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {k: %q}}\n", d.image)
	case "data":
		return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n"
	case "cow":
		main = ", env: [{name: A, valueFrom: {secretKeyRef: {name: vault, key: k}}}]"
	case "dog":
		main = ", env: [{name: A, valueFrom: {configMapKeyRef: {name: conf, key: k}}}]"
	case "elk":
		more = "volumes: [{name: data-pvc, persistentVolumeClaim: {claimName: data}}], "
	}
	if misspelt {
		more += "imagesPullSecret: x, "
	}
	spec := fmt.Sprintf("{%sterminationGracePeriodSeconds: 1, restartPolicy: Always, containers: [{name: c, image: %q%s}]}", more, d.image, main)
	labels := fmt.Sprintf("labels: {v: \"%d\"}", d.label)
	switch d.name {
	case "fox":
		spec = strings.Replace(spec, "Always", "OnFailure", 1)
		return fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: fox}, spec: {template: {metadata: {%s}, spec: %s}}}\n", labels, spec)
	case "gnu":
		labels += ", annotations: {monopod.start-after: ant}"
	}
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, %s}, spec: %s}\n", d.name, labels, spec)
}

// paper is a file of the folder, or the answer of the URL, and what is wrong with it.
type paper struct {
	docs     []document
	whole    int    // so many of docs are there; the next one is cut, if there is one
	misspelt string // the document with an unknown field; "": none
	trouble  string // why it cannot be read at all; "": it can
	text     string
}

func newPaper(docs []document) *paper {
	p := &paper{docs: docs, whole: len(docs)}
	p.print()
	return p
}

// print makes the text.
func (p *paper) print() {
	var all []string
	for _, d := range p.docs[:p.whole] {
		all = append(all, d.text(d.name == p.misspelt))
	}
	p.text = strings.Join(all, "---\n")
}

// isBad reports whether the paper has an error.
func (p *paper) isBad() bool { return p.trouble != "" || p.whole < len(p.docs) || p.misspelt != "" }

// says returns what it says of a name, as far as it can be read; nil: nothing.
func (p *paper) says(name string) *document {
	if p == nil || p.trouble != "" || p.misspelt == name {
		return nil
	}
	k := slices.IndexFunc(p.docs[:p.whole], func(d document) bool { return d.name == name })
	if k < 0 {
		return nil
	}
	return &p.docs[k]
}

// spoil returns a paper that is about to become bad.
func (w *inputWalk) spoil(name string) *paper {
	p := w.papers[name]
	w.hint(name, p)
	w.fell[name] = true
	return p
}

// some documents, in any order.
func (w *inputWalk) someDocuments() (docs []document) {
	for _, name := range some(w.rand, 1+w.rand.IntN(4), inputNames...) {
		docs = append(docs, w.document(name))
	}
	return docs
}

// document is a version of one that is often the one that runs.
func (w *inputWalk) document(name string) document {
	d := document{name: name, image: fmt.Sprint("img:", 1+w.rand.IntN(3)), label: w.rand.IntN(2)}
	if r, runs := w.ran[name]; runs && w.rand.IntN(2) == 0 {
		d.image = r.image
	}
	return d
}

func (w *inputWalk) somePaper() string {
	if len(w.papers) == 0 {
		return ""
	}
	return pick(w.rand, slices.Sorted(maps.Keys(w.papers))...)
}

func (p *paper) String() string {
	var all []string
	for k, d := range p.docs {
		text := fmt.Sprintf("%s %s %d", d.name, d.image, d.label)
		switch {
		case k == p.whole:
			text += " CUT"
		case k > p.whole:
			text += " LOST"
		case d.name == p.misspelt:
			text += " MISSPELT"
		}
		all = append(all, text)
	}
	return strings.TrimSpace(p.trouble + " [" + strings.Join(all, ", ") + "]")
}
