package decode

import (
	"bytes"
	"regexp"
	"strings"
)

// privacy says whether what is said of a file may quote it. It may not if a document of
// the file may be a Secret, or hold one: a slip of the pen moves a value to a place where
// a name, a kind or another document's field is read. It is found out when the first
// problem is said.
type privacy struct {
	data  []byte
	asked bool
	kept  bool
	known func() map[string]bool // the names that may be said of a file that is kept private; nil: Kubernetes'
}

// isKept reports whether nothing of the file may be quoted. What is not known to be open is kept.
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

func (p *privacy) names() map[string]bool {
	if p == nil || p.known == nil {
		return kubernetesNames()
	}
	return p.known()
}

var (
	// aKind finds where a text says a kind, in YAML, JSON or JSON in a string.
	aKind = regexp.MustCompile(`(?i)kind\\*["']?\s*:\s*`)
	// plainKind is a kind as nearly everybody writes it.
	plainKind = regexp.MustCompile(`^\\*["']?([A-Za-z]+)\\*["']?[ \t]*(?:[,}\]\r\n]|[ \t]#|$)`)
	// secretField is the field that Secrets alone have, in any case and with an underscore or dash.
	secretField = regexp.MustCompile(`(?i)string[-_ ]?data`)
	// anyData is the field that Secrets share with ConfigMaps.
	anyData = regexp.MustCompile(`(?i)\bdata\\*["']?\s*:`)
	// escapedKey is a key that is not written as it is read.
	escapedKey = regexp.MustCompile(`\\[xuU][^"\n]*"\s*:`)
)

// openKinds are kinds whose documents hold no Secret, unless they say another kind, too.
var openKinds = map[string]bool{
	"Pod": true, "PodList": true, "List": true, "ConfigMap": true, "ConfigMapList": true, "PersistentVolumeClaim": true,
	"Deployment": true, "StatefulSet": true, "DaemonSet": true, "ReplicaSet": true, "Job": true, "CronJob": true,
	"Service": true, "ServiceAccount": true, "Namespace": true,
}

// mayBeSecret reports whether the text of a document, which need not parse, may be a
// Secret or hold one: it says no kind in plain words, or one that looks like a Secret's, or
// has a field of Secrets that its kinds do not have. Where that is in doubt, it may be.
func mayBeSecret(text []byte) bool {
	if secretField.Match(text) || escapedKey.Match(text) {
		return true
	}
	kinds := map[string]bool{}
	open := true
	for _, at := range aKind.FindAllIndex(text, -1) {
		m := plainKind.FindSubmatch(text[at[1]:min(len(text), at[1]+100)])
		if m == nil || likeSecret(string(m[1])) {
			return true
		}
		if inComment(text[:at[0]]) {
			continue
		}
		kinds[string(m[1])], open = true, open && openKinds[string(m[1])]
	}
	hasData := open && (kinds["ConfigMap"] || kinds["ConfigMapList"]) && !kinds["List"]
	return len(kinds) == 0 || !hasData && anyData.Match(text)
}

// inComment reports whether what follows a text stands on a line that is a comment.
func inComment(before []byte) bool {
	line := bytes.TrimLeft(before[bytes.LastIndexByte(before, '\n')+1:], " \t")
	return len(line) > 0 && line[0] == '#'
}

// likeSecret reports whether a word may be meant for a kind of Secrets.
func likeSecret(kind string) bool {
	word := strings.ToLower(kind)
	if openKinds[kind] || len(word) > 60 {
		return false
	}
	return strings.Contains(word, "secret") || Distance(word, "secret") <= 2 || Distance(word, "secrets") <= 2 || Distance(word, "secretlist") <= 3
}
