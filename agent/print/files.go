package print

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/status"
)

// hashWidth is how much of a hash is shown to people to distinguish versions.
const hashWidth = 12

// files prints a table of files with a line for each pod and object that they name, and below it
// their problems; as json or yaml the status.Manifests, as name the paths.
func (l *Listing) files(w, notes io.Writer, f Format) error {
	m := l.Manifests
	if l.Some {
		others := func(file status.File) bool {
			return !slices.ContainsFunc(l.Pods, func(p v1.Pod) bool { return names(file, &p) })
		}
		m.Files, m.Leaving = slices.DeleteFunc(slices.Clone(m.Files), others), slices.DeleteFunc(slices.Clone(m.Leaving), others)
	}
	if f.Output == "json" || f.Output == "yaml" {
		return As(w, f.Output, m)
	}
	var out bytes.Buffer
	switch {
	case f.Output == "name":
		for _, file := range m.Files {
			fmt.Fprintln(&out, OneLine(file.Path))
		}
		f.Columns = 0 // for programs, to any output
		return f.write(w, notes, &out, nil)
	case len(m.Files)+len(m.Leaving) == 0 && f.Columns > 0:
		fmt.Fprintln(&out, wrapped("No manifests.", f.Columns, 0))
	default:
		l.fileTable(m, f).Print(&out)
	}
	return f.write(w, notes, &out, append(ManifestWords(m, f.Output == "wide"), l.waitWords(m, f.Now)...))
}

// waitWords returns why versions do not run if no problem of their files is the reason: what pods
// report themselves is not listed with files.
func (l *Listing) waitWords(m status.Manifests, now time.Time) (words []string) {
	for _, f := range m.Files {
		words = append(words, layerWords(f, m)...)
		for _, v := range f.Versions {
			isListed := slices.ContainsFunc(f.Problems, func(p status.Problem) bool { return p.Pod == v.Pod && !p.Waits })
			gaveWay := v.State == status.Rejected && slices.ContainsFunc(f.Problems, func(p status.Problem) bool { return p.Pod == v.Pod && p.Waits })
			switch {
			case isListed || v.Reason == "":
			case v.State == status.Waiting:
				words = append(words, OneLine(within(m.Base(), f.Path)+": "+v.Pod+" waits: "+withTry(v.Reason, l.pullsOf(v.Pod), now).Text))
			case gaveWay:
				words = append(words, OneLine(within(m.Base(), f.Path)+": "+v.Pod+": "+v.Reason))
			}
		}
	}
	return words
}

// layerWords returns because of which file of a higher folder a file has no effect.
func layerWords(f status.File, m status.Manifests) (words []string) {
	path := within(m.Base(), f.Path)
	if f.MaskedBy != "" {
		words = append(words, OneLine(path+": masked by "+f.MaskedBy))
	}
	gaveWay := func(state status.State, reason, name, by string) {
		if state == status.Superseded && reason == "" && len(m.Dirs) > 0 {
			words = append(words, OneLine(path+": "+by+" gives "+name+", too, and wins"))
		}
	}
	for _, v := range f.Versions {
		gaveWay(v.State, v.Reason, v.Pod, v.By)
	}
	for _, o := range f.Objects {
		gaveWay(o.State, o.Reason, objectName(o), o.By)
	}
	return words
}

// pullsOf returns which images of a pod, "namespace/name", are tried again.
func (l *Listing) pullsOf(pod string) []status.Pull {
	for i := range l.Pods {
		if l.Pods[i].Namespace+"/"+l.Pods[i].Name == pod {
			return status.PullsOf(&l.Pods[i])
		}
	}
	return nil
}

func (l *Listing) fileTable(m status.Manifests, f Format) *Table {
	t, node := &Table{columns: f.Columns, spare: []spare{{3, "SINCE"}, {4, "HASH"}}}, ""
	if len(l.Pods) > 0 {
		node = l.Pods[0].Spec.NodeName
	}
	if !f.NoHeaders {
		t.Line("FILE", "OBJECT", "STATE", "SINCE", "HASH", "RUNNING")
	}
	hash := func(full string) string {
		if f.Output == "wide" {
			return full
		}
		return full[:min(len(full), hashWidth)]
	}
	for _, file := range m.Files {
		path := within(m.Base(), file.Path)
		if len(file.Versions)+len(file.Objects) == 0 {
			t.add(stateRow(f, path, "", file.State, file.Since, "", "")...)
		}
		for _, v := range file.Versions {
			t.add(stateRow(f, path, short(v.Pod, node), v.State, v.Since, hash(string(v.Hash)), hash(string(v.Running)))...)
		}
		for _, o := range file.Objects {
			t.add(stateRow(f, path, objectName(o), o.State, time.Time{}, "", "")...)
		}
	}
	for _, file := range m.Leaving {
		for _, pod := range file.Pods {
			t.add(stateRow(f, within(m.Base(), file.Path), short(pod, node), leaving, time.Time{}, "", "")...)
		}
		for _, o := range file.Objects {
			t.add(stateRow(f, within(m.Base(), file.Path), objectName(o), leaving, time.Time{}, "", "")...)
		}
	}
	return t
}

// leaving is the state of the pods and objects of a removed file, until they are gone, too.
const leaving status.State = "leaving"

// objectName is an object in the form of `monopod forget`.
func objectName(o status.Object) string { return strings.ToLower(o.Kind) + "/" + o.Name }

// stateRow is the line of one pod or object of a file, or of a file without any.
func stateRow(f Format, path, pod string, state status.State, since time.Time, hash, running string) []cell {
	row := plainCells([]string{path, pod, string(state), clock(since), hash, running})
	if f.Color {
		row[2].Color = stateColors[state]
	}
	return row
}

var stateColors = map[status.State]string{
	status.Accepted: green, status.Waiting: yellow, status.Superseded: yellow, status.Masked: yellow, status.Rejected: red}

// clock returns a moment for people, "" if it is not known.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return string(message.Time(t))
}

// names reports whether the file gives the pod, or has a version of it or an object that
// it refers to.
func names(f status.File, p *v1.Pod) bool {
	refers := func(o status.Object) bool { return slices.Contains(o.Pods, p.Namespace+"/"+p.Name) }
	return Gives(f, p) || slices.ContainsFunc(f.Objects, refers) ||
		slices.ContainsFunc(f.Versions, func(v status.Version) bool { return isOf(v, p) })
}

func isOf(v status.Version, p *v1.Pod) bool {
	return v.Pod == p.Namespace+"/"+p.Name || v.Pod == p.Namespace+"/"+ShortName(p)
}

// versions prints the result of the pod in each file that names it.
func (d *description) versions() {
	for _, f := range d.manifests.Files {
		for _, v := range f.Versions {
			if !isOf(v, d.pod) {
				continue
			}
			depth := 2
			if f.Path != d.manifest() {
				d.line(2, "Also in", f.Path)
				depth = 4
			}
			state := string(v.State)
			if !v.Since.IsZero() {
				state += " since " + clock(v.Since)
			}
			at := ""
			if v.Line > 0 {
				at = fmt.Sprintf("line %d, column %d", v.Line, v.Column)
			}
			d.line(depth, "State", JoinWords(state, at, v.Reason))
			d.lineIf(depth, "Hash", string(v.Hash))
			if depth == 2 {
				d.lineIf(depth, "Running", different(string(v.Running), string(v.Hash)))
			}
			if v.Trial == status.TrialOn {
				d.line(depth, "On Trial", "it gives way to the version before unless it works")
			}
			if v.Output != "" {
				d.line(depth, "Last Output", "")
				for line := range strings.Lines(v.Output) {
					d.wrap(strings.Repeat(" ", depth+2)+OneLine(strings.TrimSuffix(line, "\n")), depth+2)
				}
			}
		}
	}
}
