// Package page writes what runs here as pages for browsers. They are complete without their script,
// which only refreshes them.
package page

import (
	"bytes"
	"embed"
	"html/template"
	"io"
	"iter"
	"path"
	"sync"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/agent/status"
)

// Policy is the Content-Security-Policy of all pages: they load their own style, script and picture,
// and nothing else.
const Policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Facts are what the pages are made of: what the endpoint shows the reader at its other paths, too.
// Nothing is hidden here.
type Facts struct {
	Version   string
	Now       time.Time
	Logs      bool              // the reader may read logs
	Node      *v1.Node          // nil: it was not looked at yet
	Runtime   *status.Runtime   // nil: not for this reader
	Manifests *status.Manifests // nil: not for this reader
	Pods      iter.Seq[*v1.Pod] // made again by each loop, so that they need not be there all at once
	Trends    map[string]status.Trend
}

//go:embed *.html
var sources embed.FS

//go:embed style.css script.js icon.svg
var assets embed.FS

// templates are parsed when somebody looks for the first time.
var templates = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(sources, "*.html")) })

// assetTypes are the types of what pages load.
var assetTypes = map[string]string{"style.css": "text/css; charset=utf-8", "script.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}

// Asset returns what pages load from /page/NAME, and its media type; "": there is no such file.
func Asset(name string) (data []byte, kind string) {
	kind, known := assetTypes[name]
	if !known {
		return nil, ""
	}
	data, err := assets.ReadFile(name)
	if err != nil {
		return nil, ""
	}
	return data, kind
}

// frame is what all pages have around them.
type frame struct {
	Title, Node, Version, At string
	Here                     string // of the pages that are linked at the top: pods, node or manifests
	Manifests                bool   // those are linked, too
}

func (f *Facts) frame(here, title string) frame {
	node := "this machine"
	if f.Node != nil && f.Node.Name != "" {
		node = f.Node.Name
	}
	return frame{Title: title, Node: node, Version: f.Version, At: f.Now.Format(time.TimeOnly), Here: here, Manifests: f.Manifests != nil}
}

// execute writes a page.
func execute(w io.Writer, name string, data any) error {
	return templates().ExecuteTemplate(calm{w}, name, data)
}

// calm replaces what could reorder the text beside it. Templates write whole characters at a time.
type calm struct{ to io.Writer }

func (c calm) Write(html []byte) (int, error) {
	disturbs := func(r rune) bool { return r != '\n' && r != '\t' && print.Disturbs(r) }
	if bytes.IndexFunc(html, disturbs) < 0 {
		return c.to.Write(html)
	}
	quiet := bytes.Map(func(r rune) rune {
		if disturbs(r) {
			return utf8.RuneError
		}
		return r
	}, html)
	if _, err := c.to.Write(quiet); err != nil {
		return 0, err
	}
	return len(html), nil
}

// Missing writes that there is no such thing.
func Missing(w io.Writer, f *Facts, what string) error {
	return execute(w, "missing.html", struct {
		frame
		What string
	}{f.frame("", "Not there"), what})
}

// class returns the class of the style sheet for a health.
func class(h print.Health) string {
	switch h {
	case print.Well:
		return "well"
	case print.OnTheWay:
		return "way"
	case print.Trouble:
		return "bad"
	}
	return "over"
}

// fact is a line of a list of facts; Code: its values are names or numbers for machines.
type fact struct {
	Key    string
	Values []string
	Code   bool
}

// facts is a list of those that have a value.
type facts []fact

func (f *facts) add(key string, values ...string) { f.put(fact{Key: key, Values: values}) }

func (f *facts) code(key string, values ...string) { f.put(fact{Key: key, Values: values, Code: true}) }

func (f *facts) put(one fact) {
	var values []string
	for _, v := range one.Values {
		if v = print.OneLine(v); v != "" {
			values = append(values, v)
		}
	}
	if len(values) > 0 {
		*f = append(*f, fact{one.Key, values, one.Code})
	}
}

// podPath is the path of the page of a pod.
func podPath(p *v1.Pod) string { return path.Join("/page/pod", p.Namespace, p.Name) }

// usage returns what a pod uses, in words and as pictures.
func (f *Facts) usage(p *v1.Pod) (u usage) {
	t, known := f.Trends[string(p.UID)]
	if !known {
		return usage{}
	}
	u.CPU, u.Memory = print.Cores(t.CPU), print.Mebibytes(t.Memory)
	u.CPUPicture = draw("cpu", t.Points, cpuOf, func(n uint64) string { return print.Cores(new(n * 1e6)) }, 50)
	u.MemoryPicture = draw("memory", t.Points, memoryOf, func(n uint64) string { return print.Mebibytes(new(n << 10)) }, 1<<10)
	return u
}

type usage struct {
	CPU, Memory               string // "": not known
	CPUPicture, MemoryPicture *picture
}
