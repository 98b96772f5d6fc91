package page

import (
	"fmt"
	"io"
	"iter"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/agent/status"
	"monopod/manifests/poduid"
)

// namedMost is how many pods in trouble are named at the top.
const namedMost = 12

// overview is the page of all pods.
type overview struct {
	frame
	Headline, Class string
	Troubled        []link // pods in trouble, the first of them
	More            int    // of them, not named
	Words           []string
	Machine         []string
	Pods            iter.Seq[row]
	Any             bool
	None            string
}

type link struct{ Text, Path string }

// row is a pod among the others.
type row struct {
	link
	Usage                              usage
	Namespace                          string // "": the default one
	Word, Class, Ready, Restarts, When string
	Hash, Images, Version              string
	Words                              []print.Word
}

// Overview writes the page of all pods.
func Overview(w io.Writer, f *Facts) error {
	o := overview{frame: f.frame("pods", "Pods"), Words: f.words(), Machine: f.machine()}
	count, isWrong := map[print.Health]int{}, len(o.Words) > 0
	for p := range f.Pods {
		o.Any = true
		isWrong = isWrong || p.Annotations[status.AnnProblems] != ""
		h := print.Summarize(p, f.Now).Health
		count[h]++
		if h == print.Trouble {
			o.name(p)
		}
	}
	o.Headline, o.Class = headline(count, isWrong)
	o.None = print.NoPods(f.folder())
	versions := f.versions()
	o.Pods = func(yield func(row) bool) {
		for p := range f.Pods {
			if !yield(f.row(p, versions)) {
				return
			}
		}
	}
	return execute(w, "overview.html", o)
}

// name names a pod in trouble.
func (o *overview) name(p *v1.Pod) {
	if len(o.Troubled) == namedMost {
		o.More++
		return
	}
	o.Troubled = append(o.Troubled, link{print.ShortName(p), podPath(p)})
}

// headline returns the state of all in one sentence. isWrong: something is wrong, be it beside the pods.
func headline(count map[print.Health]int, isWrong bool) (text, of string) {
	all := 0
	for _, n := range count {
		all += n
	}
	some := func(n int, is, are string) string {
		if n == 1 {
			return fmt.Sprintf("%d of %s %s", n, pods(all), is)
		}
		return fmt.Sprintf("%d of %s %s", n, pods(all), are)
	}
	well := class(print.Well)
	if isWrong {
		well = class(print.OnTheWay)
	}
	switch {
	case all == 0:
		return "No pods", class(print.Over)
	case count[print.Trouble] > 0:
		return some(count[print.Trouble], "is in trouble", "are in trouble"), class(print.Trouble)
	case count[print.OnTheWay] > 0:
		return some(count[print.OnTheWay], "is on its way", "are on their way"), class(print.OnTheWay)
	case count[print.Over] > 0:
		return some(count[print.Over], "has ended; all others are well", "have ended; all others are well"), well
	case all == 1:
		return "The pod is well", well
	}
	return fmt.Sprintf("All %s are well", pods(all)), well
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// words returns what is wrong beside the pods, as `monopod ps` does.
func (f *Facts) words() []string {
	all := f.nodeWords()
	if f.Manifests != nil {
		all = append(all, print.ManifestWords(*f.Manifests, false)...)
	}
	return all
}

// nodeWords returns what is wrong with the runtime and the node.
func (f *Facts) nodeWords() (all []string) {
	isUp := f.Runtime == nil || f.Runtime.Up
	if f.Runtime != nil {
		all = append(all, print.RuntimeWords(*f.Runtime, f.Now)...)
	}
	if f.Node != nil {
		all = append(all, print.NodeWords(f.Node, isUp, f.Now)...)
	}
	return all
}

// machine returns what the machine is, a few words each.
func (f *Facts) machine() (all []string) {
	if f.Node == nil {
		return nil
	}
	info := f.Node.Status.NodeInfo
	for _, r := range print.NodeResources(f.Node, nil) {
		switch v1.ResourceName(r.Name) {
		case v1.ResourceCPU:
			all = append(all, r.Capacity+" cpus")
		case v1.ResourceMemory:
			all = append(all, r.Capacity+" of memory")
		}
	}
	for _, text := range []string{strings.Replace(info.ContainerRuntimeVersion, "://", " ", 1), info.OSImage} {
		if text = print.OneLine(text); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// folder returns where manifests belong, "" if the reader may not know.
func (f *Facts) folder() string {
	if f.Manifests == nil {
		return ""
	}
	return strings.Join(f.Manifests.Folders(), " or ")
}

func (f *Facts) row(p *v1.Pod, versions versions) row {
	s := print.Summarize(p, f.Now)
	r := row{link: link{print.ShortName(p), podPath(p)}, Usage: f.usage(p), Word: print.OneLine(s.Word), Class: class(s.Health), Ready: s.Ready, Restarts: s.Restarts, When: s.Age,
		Hash: hashOf(p), Images: imageNames(p), Version: offered(versions.of(p))}
	if p.Namespace != v1.NamespaceDefault {
		r.Namespace = p.Namespace
	}
	r.Words = clipped(print.WordsOf(p, f.Now))
	return r
}

// wordMost is how many characters of what is wrong the overview has; the page of the pod has all.
const wordMost = 400

func clipped(words []print.Word) []print.Word {
	for k := range words {
		if text := []rune(words[k].Text); len(text) > wordMost {
			words[k].Text = string(text[:wordMost]) + "…"
		}
	}
	return words
}

// hash returns the beginning of the hash of the version that runs.
func hashOf(p *v1.Pod) string {
	const most = 8
	hash := print.OneLine(p.Annotations[poduid.AnnotationHash])
	return hash[:min(len(hash), most)]
}

// imageNames returns the images of a pod without their registries.
func imageNames(p *v1.Pod) string {
	var all []string
	for _, c := range p.Spec.Containers {
		name, _, _ := strings.Cut(c.Image, "@")
		all = append(all, print.OneLine(path.Base(name)))
	}
	return strings.Join(all, ", ")
}

// offered returns the state of the version that the manifest gives, if that does not just run.
func offered(all []version) string {
	for _, v := range all {
		switch {
		case v.Trial == status.TrialOn:
			return "on trial"
		case v.State != status.Accepted && v.State != "":
			return "another version: " + string(v.State)
		}
	}
	return ""
}

// version is the result of a pod in a file.
type version struct {
	status.Version
	File string
}

// versions are those of the pods in all files, by namespace/name.
type versions map[string][]version

func (f *Facts) versions() versions {
	if f.Manifests == nil {
		return nil
	}
	all := versions{}
	for _, file := range f.Manifests.Files {
		for _, v := range file.Versions {
			all[v.Pod] = append(all[v.Pod], version{v, file.Path})
		}
	}
	return all
}

// of returns those of a pod.
func (all versions) of(p *v1.Pod) []version {
	if own := all[p.Namespace+"/"+p.Name]; own != nil {
		return own
	}
	return all[p.Namespace+"/"+print.ShortName(p)]
}
