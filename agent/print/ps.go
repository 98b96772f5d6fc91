package print

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// Listing is what ps lists.
type Listing struct {
	Pods      []v1.Pod
	Manifests status.Manifests
	Some      bool     // only some pods were requested: nothing is printed about others' manifests
	None      string   // printed if there are none; "": that there are none at all
	Words     []string // further problems: of the runtime, of the node
	Files     bool     // list files instead, all of them or those that name the pods
}

// Ps prints a table of pods, and below it all problems, in words, which go to notes unless w is a
// terminal; as json or yaml a PodList, as name a line for each.
func Ps(w, notes io.Writer, l Listing, f Format) error {
	if l.Files {
		return l.files(w, notes, f)
	}
	if f.Output == "json" || f.Output == "yaml" {
		return podListAs(w, f.Output, l.Pods)
	}
	var out bytes.Buffer
	var words []string
	switch {
	case len(l.Pods) == 0 && f.Columns > 0 && f.Output != "name":
		fmt.Fprintln(&out, wrapped(l.none(), f.Columns, 0))
	case len(l.Pods) == 0:
		words = append(words, l.none())
	case f.Output == "name":
		for i := range l.Pods {
			fmt.Fprintln(&out, l.Pods[i].Namespace+"/"+ShortName(&l.Pods[i]))
		}
	default:
		podTable(l.Pods, l.Manifests, f).Print(&out)
	}
	if f.Output == "name" {
		f.Columns = 0 // for programs, to any output
	} else {
		words = append(words, l.words(f.Now)...)
	}
	return f.write(w, notes, &out, words)
}

// words returns all problems.
func (l *Listing) words(now time.Time) []string {
	words := slices.Clone(l.Words)
	if !l.Some {
		words = append(words, ManifestWords(l.Manifests, false)...)
	}
	for _, f := range l.Manifests.Files {
		if l.Some && slices.ContainsFunc(l.Pods, func(p v1.Pod) bool { return Gives(f, &p) }) {
			words = append(words, FileWords(f, l.Manifests.Base(), false)...)
		}
	}
	return append(words, PodWords(l.Pods, now)...)
}

func (l *Listing) none() string {
	return cmp.Or(l.None, NoPods(strings.Join(l.Manifests.Folders(), " or ")))
}

// NoPods returns that there are none, and how to make one, if the folder is known.
func NoPods(dir string) string {
	if dir == "" {
		return "No pods."
	}
	return fmt.Sprintf("No pods. Put manifests (*.yaml, *.yml, *.json) into %s.", dir)
}

// podTable lays the pods out; the namespace is shown if it tells something.
func podTable(pods []v1.Pod, m status.Manifests, f Format) *Table {
	wide := f.Output == "wide"
	namespaces := f.namespaces(slices.ContainsFunc(pods, func(p v1.Pod) bool { return p.Namespace != v1.NamespaceDefault }))
	t := &Table{columns: f.Columns}
	head := []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"}
	if namespaces {
		head = slices.Insert(head, 0, "NAMESPACE")
	}
	if wide {
		first := len(head)
		head = append(head, "IP", "FILE", "IMAGES")
		t.spare = []spare{{first + 2, "IMAGES"}, {first + 1, "FILE"}, {first, "IP"}}
	}
	if !f.NoHeaders {
		t.Line(head...)
	}
	files := filesOf(m)
	for i := range pods {
		p := &pods[i]
		s := Summarize(p, f.Now)
		row := plainCells([]string{ShortName(p), s.Ready, s.Word, s.Restarts, s.Age})
		if f.Color {
			row[2].Color = healthColors[s.Health]
		}
		if namespaces {
			row = slices.Insert(row, 0, cell{Text: p.Namespace})
		}
		if wide {
			file := cmp.Or(files[p.Namespace+"/"+ShortName(p)], files[p.Namespace+"/"+p.Name])
			row = append(row, plainCells([]string{p.Status.PodIP, file, images(p)})...)
		}
		t.add(row...)
	}
	return t
}

// filesOf returns the file of each pod by "namespace/name".
func filesOf(m status.Manifests) map[string]string {
	files := map[string]string{}
	for _, f := range m.Files {
		for _, pod := range f.Pods {
			if files[pod] == "" {
				files[pod] = within(m.Base(), f.Path)
			}
		}
	}
	return files
}

func images(p *v1.Pod) string {
	var all []string
	for _, c := range p.Spec.Containers {
		all = append(all, c.Image)
	}
	return strings.Join(all, ",")
}
