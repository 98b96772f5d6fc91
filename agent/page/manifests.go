package page

import (
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"monopod/agent/print"
	"monopod/agent/status"
)

// manifestsPage is the page of all manifest files.
type manifestsPage struct {
	frame
	Folders []string
	Words   []string // about none of the files
	Files   []file
}

type file struct {
	link
	State, Class, Since string
	Pods, Objects       []string
	Words               []string
}

// Manifests writes the page of all manifest files.
func Manifests(w io.Writer, f *Facts) error {
	m := f.Manifests
	g := manifestsPage{frame: f.frame("manifests", "Manifests"), Folders: m.Folders()}
	others := *m
	others.Files = nil
	g.Words = print.ManifestWords(others, false)
	for _, one := range m.Files {
		g.Files = append(g.Files, f.file(one))
	}
	for _, one := range m.Leaving {
		g.Files = append(g.Files, file{link: link{Text: one.Path}, State: "leaving", Class: class(print.OnTheWay), Pods: one.Pods})
	}
	return execute(w, "manifests.html", g)
}

func (f *Facts) file(one status.File) file {
	out := file{link: link{one.Path, (&url.URL{Path: "/page/manifest", RawQuery: url.Values{"path": {one.Path}}.Encode()}).String()},
		State: string(one.State), Class: classOf(one.State), Pods: one.Pods, Words: print.FileWords(one, f.Manifests.Base(), true)}
	if print.KnownTime(one.Since, f.Now) {
		out.Since = print.Ago(one.Since, f.Now)
	}
	for _, o := range one.Objects {
		out.Objects = append(out.Objects, strings.ToLower(o.Kind)+" "+o.Name)
	}
	return out
}

func classOf(s status.State) string {
	switch s {
	case status.Accepted:
		return class(print.Well)
	case status.Rejected:
		return class(print.Trouble)
	case status.Waiting, status.Superseded, status.Masked, status.Unread:
		return class(print.OnTheWay)
	}
	return class(print.Over)
}

// manifestPage is the page of one manifest file.
type manifestPage struct {
	frame
	File   file
	Lines  []line
	Cut    bool
	Hidden string   // why the text is not shown; "": it is
	Other  []string // problems that have no line in the text
}

// line is a line of a manifest with what is wrong in it.
type line struct {
	Text     string
	Problems []problem
}

type problem struct{ Class, Text string }

// textMost is how many bytes of a manifest are shown.
const textMost = 256 << 10

// Manifest writes the page of a manifest file: its text, with the problems where they are, or why
// it is not shown.
func Manifest(w io.Writer, f *Facts, one status.File, text []byte, why string) error {
	g := manifestPage{frame: f.frame("manifests", path.Base(one.Path)), File: f.file(one), Cut: len(text) > textMost, Hidden: why}
	at := problemsOf(one)
	if why == "" {
		shown := strings.ToValidUTF8(string(text[:min(len(text), textMost)]), "\ufffd")
		for k, l := range strings.Split(strings.TrimSuffix(shown, "\n"), "\n") {
			g.Lines = append(g.Lines, line{strings.TrimSuffix(l, "\r"), at[k+1]})
			delete(at, k+1)
		}
	}
	if len(at) > 0 {
		g.Other = g.File.Words
	}
	return execute(w, "manifest.html", g)
}

// problemsOf returns what is wrong in a file, by line; 0: it has no line.
func problemsOf(one status.File) map[int][]problem {
	at := map[int][]problem{}
	for _, p := range one.Problems {
		of := class(print.Trouble)
		if p.Warning {
			of = class(print.OnTheWay)
		}
		n := p.Line
		p.File, p.Line, p.Column = "", 0, 0
		at[n] = append(at[n], problem{of, print.ProblemLine(p, "")})
	}
	for _, v := range one.Versions {
		isListed := slices.ContainsFunc(one.Problems, func(p status.Problem) bool { return p.Pod == v.Pod })
		if v.Reason != "" && v.Line > 0 && !isListed {
			at[v.Line] = append(at[v.Line], problem{classOf(v.State), print.OneLine(print.JoinWords(v.Pod, v.Reason))})
		}
	}
	return at
}
