package decode

import (
	"regexp"
	"strings"
)

// privacy decides whether messages about a file may quote it. They may not if a document of the
// file may be a Secret or hold one: a typing error can move a value to where a name, a kind or
// another document's field is read. It is decided when the first problem is reported.
type privacy struct {
	data  []byte
	asked bool
	kept  bool
	known func() map[string]bool // names that may appear in messages about a private file; nil: Kubernetes'
}

// isKept reports whether the file is private and nothing of it may be quoted. If in doubt, it is
// private.
func (p *privacy) isKept() bool {
	if p == nil {
		return true
	}
	if !p.asked {
		p.asked = true
		for c := range chunks(p.data) {
			p.kept = p.kept || !blank(c.text) && mayBeSecret(c.text)
		}
		p.data = nil
	}
	return p.kept
}

// IsPrivate reports whether a file may hold a Secret, so that nothing of it may be shown. If in
// doubt, it is private.
func IsPrivate(data []byte) bool { return (&privacy{data: data}).isKept() }

func (p *privacy) names() map[string]bool {
	if p == nil || p.known == nil {
		return kubernetesNames()
	}
	return p.known()
}

var (
	// aKind finds where a text sets a kind, in YAML, JSON or JSON in a string.
	aKind = regexp.MustCompile(`(?i)kind\\*["']?\s*:\s*`)
	// plainKind is a kind in its usual spelling.
	plainKind = regexp.MustCompile(`^\\*["']?([A-Za-z]+)\\*["']?[ \t]*(?:[,}\]\r\n]|[ \t]#|$)`)
	// secretField is the field that only Secrets have, in any case and with an underscore or dash.
	secretField = regexp.MustCompile(`(?i)string[-_ ]?data`)
	// anyData is the field that both Secrets and ConfigMaps have.
	anyData = regexp.MustCompile(`(?i)\bdata\\*["']?\s*:`)
	// escapedKey is a key whose spelling differs from its name.
	escapedKey = regexp.MustCompile(`\\[xuU][^"\n]*"\s*:`)
)

// openKinds are kinds whose documents hold no Secret, unless they set another kind, too.
var openKinds = map[string]bool{
	"Pod": true, "PodList": true, "List": true, "ConfigMap": true, "ConfigMapList": true, "PersistentVolumeClaim": true,
	"Deployment": true, "StatefulSet": true, "DaemonSet": true, "ReplicaSet": true, "Job": true, "CronJob": true,
	"Service": true, "ServiceAccount": true, "Namespace": true,
}

// mayBeSecret reports whether the text of a document, which need not parse, may be a Secret or hold
// one: it sets no kind in plain spelling, or one similar to a Secret's, or has a field of Secrets
// that its kinds do not have. If in doubt, it is true.
func mayBeSecret(text []byte) bool {
	if secretField.Match(text) || escapedKey.Match(text) {
		return true
	}
	kinds := map[string]bool{}
	open, comments := true, comments{text: text}
	for _, at := range aKind.FindAllIndex(text, -1) {
		m := plainKind.FindSubmatch(text[at[1]:min(len(text), at[1]+100)])
		if m == nil || likeSecret(string(m[1])) {
			return true
		}
		if comments.has(at[0]) {
			continue
		}
		kinds[string(m[1])], open = true, open && openKinds[string(m[1])]
	}
	hasData := open && (kinds["ConfigMap"] || kinds["ConfigMapList"]) && !kinds["List"]
	return len(kinds) == 0 || !hasData && anyData.Match(text)
}

// comments tells which places of a text are in comment lines. It is asked for them in order, so that
// it reads the text once, however long a line is.
type comments struct {
	text  []byte
	seen  int  // up to where it was read
	first byte // the first character of the line there that is no blank; 0: there is none yet
}

// has reports whether a place is in a comment line.
func (c *comments) has(at int) bool {
	for ; c.seen < at; c.seen++ {
		switch char := c.text[c.seen]; {
		case char == '\n':
			c.first = 0
		case c.first == 0 && char != ' ' && char != '\t':
			c.first = char
		}
	}
	return c.first == '#'
}

// likeSecret reports whether a word may be a misspelt kind of Secrets.
func likeSecret(kind string) bool {
	word := strings.ToLower(kind)
	if openKinds[kind] || len(word) > 60 {
		return false
	}
	return strings.Contains(word, "secret") || Distance(word, "secret") <= 2 || Distance(word, "secrets") <= 2 || Distance(word, "secretlist") <= 3
}
