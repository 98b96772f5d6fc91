package decode

import "fmt"

// Problem is one error or warning about a manifest, as text for people.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // from 1; 0: unknown
	Column  int    `json:"column,omitempty"` // from 1; 0: unknown
	Pod     string `json:"pod,omitempty"`    // namespace/name, if known
	Object  string `json:"object,omitempty"` // such as "ConfigMap default/app", if it is about one
	Field   string `json:"field,omitempty"`  // such as spec.containers[0].image
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"` // the pod runs all the same
	Note    bool   `json:"note,omitempty"`    // a Warning that stays as long as the manifest: what it is about has no effect here
	Waits   bool   `json:"waits,omitempty"`   // for a version that does not run; the status of the pod says so, too
}

// Error returns "file:line:column: field: message", leaving out unknown parts.
func (p Problem) Error() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
		if p.Column > 0 {
			s += fmt.Sprintf(":%d", p.Column)
		}
	}
	if s != "" {
		s += ": "
	}
	if p.Field != "" {
		s += p.Field + ": "
	}
	return s + p.Message
}
