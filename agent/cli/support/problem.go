package support

import (
	"regexp"
	"strings"

	"monopod/manifests/decode"
)

var (
	// valueField is a field that is a value, or stands where a value may have slipped in.
	valueField = regexp.MustCompile(`\b(?:env|httpHeaders)\b|^(?:data|stringData|binaryData)\b`)

	// plainField is a field in which no other words are quoted than the value.
	plainField = regexp.MustCompile(`\b(?:env|httpHeaders)\[\d+\](?:\.value)?$|^(?:data|stringData|binaryData)\b`)

	// quotedValue is what a problem quotes: a text in quotes, or a number.
	quotedValue = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\([^)]*\)|[-+.]?\b\d[\w.+-]*`)
)

// AddProblem adds the values that a problem with a manifest quotes: a manifest that is not accepted
// gives no pod that would have them. Its message is known, too, so that short values are hidden in it.
func (s *Secrets) AddProblem(p decode.Problem) {
	if !valueField.MatchString(p.Field) {
		return
	}
	if plainField.MatchString(p.Field) {
		for _, value := range quotedValue.FindAllString(p.Message, -1) {
			s.add(strings.Trim(value, `"()`))
		}
	}
	if public := quotedValue.ReplaceAllString(p.Message, Mark); public != p.Message {
		for _, form := range append(quoted(p.Message), p.Message) {
			s.replace(form, public)
		}
	}
}
