package elide

import (
	"bytes"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// longest is how much of a value counts, in bytes: more than any text that is
// reported of a pod holds.
const longest = 16 << 10

// envValues returns the values that stand in a container's env, as they are
// written and as the container gets them.
func envValues(vars []v1.EnvVar) []string {
	var out []string
	fixed, open := map[string]string{}, map[string]bool{} // variables whose values are known here; those that are not
	for _, v := range vars {
		if v.ValueFrom != nil && v.Value == "" {
			delete(fixed, v.Name)
			open[v.Name] = true
			continue
		}
		pieces := expand(v.Value, fixed, open)
		out = append(append(out, v.Value), pieces...)
		if fixed[v.Name], open[v.Name] = pieces[0], len(pieces) > 1; open[v.Name] {
			delete(fixed, v.Name)
		}
	}
	return out
}

// expand replaces $(NAME) by its value and $$ by $, as a container's env is
// made, and returns what stands between the values that are not known here.
func expand(value string, fixed map[string]string, open map[string]bool) (pieces []string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, "$")
		b.WriteString(before)
		if !found {
			return append(pieces, b.String())
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		known, isKnown := fixed[name]
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			value = rest[1:]
		case !strings.HasPrefix(rest, "(") || !closed:
			b.WriteByte('$')
			value = rest
		case isKnown:
			b.WriteString(known)
			value = after
		case open[name]:
			pieces = append(pieces, b.String())
			b.Reset()
			value = after
		default:
			b.WriteString("$(" + name + ")")
			value = after
		}
	}
}

// forms returns a value as it may stand in a text: as it is, trimmed, each of
// its lines, and all of these escaped.
func forms(value string) []string {
	value = value[:min(len(value), longest)]
	plain := []string{value, strings.TrimSpace(value)}
	if strings.Contains(value, "\n") {
		for line := range strings.SplitSeq(value, "\n") {
			plain = append(plain, strings.TrimSpace(line))
		}
	}
	out := plain
	for _, s := range plain {
		if isWord(s) {
			continue // all escapes leave it as it is
		}
		for _, once := range escapes {
			escaped := once(s)
			out = append(out, escaped)
			for _, twice := range quotes {
				out = append(out, twice(escaped))
			}
		}
	}
	return out
}

func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// quotes are the ways in which a text is quoted by another one.
var quotes = []func(string) string{
	func(s string) string { return unquoted(strconv.Quote(s)) },
	func(s string) string { return unquoted(strconv.QuoteToASCII(s)) },
	func(s string) string { return asJSON(s, true) },
	func(s string) string { return asJSON(s, false) },
}

// escapes are the ways in which a value is written in a command, a URL or a text.
var escapes = append([]func(string) string{
	func(s string) string { return strings.ReplaceAll(s, `'`, `'\''`) },
	func(s string) string { return strings.ReplaceAll(s, `'`, `'"'"'`) },
	backslashed,
	url.QueryEscape,
	url.PathEscape,
}, quotes...)

// backslashed escapes as a shell's printf %q does.
func backslashed(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 && !isWord(string(r)) && !strings.ContainsRune("/:=@%+,", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func asJSON(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(s) != nil { // a string never fails
		return s
	}
	return unquoted(strings.TrimSuffix(b.String(), "\n"))
}

func unquoted(s string) string { return s[1 : len(s)-1] }

// indexes returns where part stands in text, also where it overlaps itself.
func indexes(text, part string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for from := 0; ; {
			k := strings.Index(text[from:], part)
			if k < 0 || !yield(from+k) {
				return
			}
			from += k + 1
		}
	}
}
