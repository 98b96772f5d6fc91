// Package imagename reads the names of images. It accepts what github.com/distribution/reference
// accepts, which its tests compare it with, and has the same errors; that package keeps half a
// megabyte of compiled regular expressions in memory.
package imagename

import (
	"errors"
	"fmt"
	"strings"
)

// Name is the full name of an image: for busybox the registry is docker.io and the path
// library/busybox. Its grammar is at github.com/distribution/reference.
type Name struct {
	Registry string // host, or host:port; "" only where the first part of the path cannot be one, as in a_b.c/d
	Path     string
	Tag      string // "": none is given
	Digest   string // such as sha256:64 hex digits; "": none is given
}

// Errors of names, in the words of other container tools.
var (
	ErrEmpty   = errors.New("repository name must have at least one component")
	ErrUpper   = errors.New("repository name must be lowercase")
	ErrFormat  = errors.New("invalid reference format")
	ErrTooLong = fmt.Errorf("repository name must not be more than %d characters", longestPath)
	ErrDigest  = errors.New("invalid checksum digest format")
	ErrLength  = errors.New("invalid checksum digest length")
	ErrUnknown = errors.New("unsupported digest algorithm")
)

const (
	longestPath = 255
	hub         = "docker.io"
	hubOnce     = "index.docker.io" // what it was called once
	official    = "library/"
	idLength    = 64
)

// Parse parses a name in its usual form, with or without a registry.
func Parse(name string) (Name, error) {
	if len(name) == idLength && all(name, isLowerHex) {
		return Name{}, fmt.Errorf("invalid repository name (%s), cannot specify 64-byte hexadecimal strings", name)
	}
	registry, rest := split(name)
	if path, _, _ := strings.Cut(rest, ":"); strings.ToLower(path) != path {
		return Name{}, fmt.Errorf("invalid reference format: repository name (%s) must be lowercase", path)
	}
	return parseFull(registry + "/" + rest)
}

// split returns the registry of a name, and the rest in the form which that registry uses.
func split(name string) (registry, rest string) {
	first, behind, more := strings.Cut(name, "/")
	switch {
	case !more:
		return hub, official + name
	case first == hubOnce:
		registry, rest = hub, behind
	case first == "localhost" || strings.ContainsAny(first, ".:") || strings.ToLower(first) != first:
		registry, rest = first, behind
	default:
		registry, rest = hub, name
	}
	if registry == hub && !strings.Contains(rest, "/") {
		rest = official + rest
	}
	return registry, rest
}

// parseFull parses a name that includes its registry.
func parseFull(full string) (Name, error) {
	n, err := parts(full)
	switch {
	case err == nil:
		return n, n.check()
	case full == "":
		return Name{}, ErrEmpty
	}
	if _, lower := parts(strings.ToLower(full)); lower == nil {
		return Name{}, ErrUpper
	}
	return Name{}, err
}

// parts splits a name by its form.
func parts(full string) (n Name, err error) {
	rest, digest, digested := strings.Cut(full, "@")
	if digested && !isDigest(digest) {
		return Name{}, ErrFormat
	}
	n.Digest = digest
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		rest, n.Tag = rest[:colon], rest[colon+1:]
		if !isTag(n.Tag) {
			return Name{}, ErrFormat
		}
	}
	registry, path, _ := strings.Cut(rest, "/")
	switch {
	case isRegistry(registry) && isPath(path):
		n.Registry, n.Path = registry, path
	case isPath(rest):
		n.Path = rest
	default:
		return Name{}, ErrFormat
	}
	return n, nil
}

// check returns what is wrong in a name that has the right form.
func (n Name) check() error {
	if len(n.Path) > longestPath {
		return ErrTooLong
	}
	if n.Digest == "" {
		return nil
	}
	algorithm, hex, _ := strings.Cut(n.Digest, ":")
	length, known := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algorithm]
	switch {
	case strings.ToLower(algorithm) != algorithm:
		return ErrDigest
	case !known:
		return ErrUnknown
	case len(hex) != length:
		return ErrLength
	case !all(hex, isLowerHex):
		return ErrDigest
	}
	return nil
}

// HasTag reports whether a name means an image by its tag, by default latest, and not by a digest or
// by an id.
func HasTag(name string) bool {
	n, err := Parse(name)
	return err == nil && n.Digest == "" && !strings.HasPrefix(name, "sha256:")
}

// Repository returns the name without tag and digest.
func (n Name) Repository() string {
	if n.Registry == "" {
		return n.Path
	}
	return n.Registry + "/" + n.Path
}

// Canonical returns the name by which a runtime looks up the image: with the digest only, if there
// is one, else with the tag, by default latest.
func (n Name) Canonical() string {
	switch {
	case n.Digest != "":
		return n.Repository() + "@" + n.Digest
	case n.Tag == "":
		return n.Repository() + ":latest"
	}
	return n.Repository() + ":" + n.Tag
}

// isRegistry accepts labels of letters, digits and inner dashes between dots, or an IPv6 address in
// brackets; and an optional port.
func isRegistry(s string) bool {
	host, port, hasPort := s, "", false
	if colon := strings.LastIndexByte(s, ':'); colon > strings.LastIndexByte(s, ']') {
		host, port, hasPort = s[:colon], s[colon+1:], true
	}
	if hasPort && (port == "" || !all(port, isDigit)) {
		return false
	}
	if inner, is := strings.CutPrefix(host, "["); is {
		inner, is = strings.CutSuffix(inner, "]")
		return is && inner != "" && all(inner, func(c byte) bool { return c == ':' || isHex(c) })
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' || !all(label, func(c byte) bool { return c == '-' || isAlphanumeric(c) }) {
			return false
		}
	}
	return true
}

// isPath accepts components between slashes: lower case letters and digits, separated by a dot, one
// or two underscores, or dashes.
func isPath(s string) bool {
	for component := range strings.SplitSeq(s, "/") {
		if !isComponent(component) {
			return false
		}
	}
	return true
}

func isComponent(s string) bool {
	for s != "" {
		word := len(s) - len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyz0123456789"))
		if word == 0 {
			return false
		}
		s = s[word:]
		if s == "" {
			return true
		}
		separator := len(s) - len(strings.TrimLeft(s, "._-"))
		if !isSeparator(s[:separator]) {
			return false
		}
		s = s[separator:]
	}
	return false
}

func isSeparator(s string) bool {
	return s == "." || s == "_" || s == "__" || s != "" && strings.Trim(s, "-") == ""
}

// isTag accepts up to 128 letters, digits, underscores, dots and dashes; the first is neither dot
// nor dash.
func isTag(s string) bool {
	return s != "" && len(s) <= 128 && isWord(s[0]) && all(s, func(c byte) bool { return isWord(c) || c == '.' || c == '-' })
}

// isDigest accepts an algorithm, whose words begin with a letter, and at least 32 hex digits.
func isDigest(s string) bool {
	algorithm, hex, ok := strings.Cut(s, ":")
	if !ok || len(hex) < 32 || !all(hex, isHex) {
		return false
	}
	for word := range strings.FieldsFuncSeq(algorithm, func(r rune) bool { return strings.ContainsRune("-_+.", r) }) {
		if isDigit(word[0]) || !all(word, isAlphanumeric) {
			return false
		}
	}
	doubled := func(k int) bool { return !isAlphanumeric(algorithm[k]) && !isAlphanumeric(algorithm[k-1]) }
	for k := 1; k < len(algorithm); k++ {
		if doubled(k) {
			return false
		}
	}
	return algorithm != "" && isAlphanumeric(algorithm[0]) && isAlphanumeric(algorithm[len(algorithm)-1])
}

func all(s string, is func(byte) bool) bool {
	for k := range len(s) {
		if !is(s[k]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool        { return '0' <= c && c <= '9' }
func isLowerHex(c byte) bool     { return isDigit(c) || 'a' <= c && c <= 'f' }
func isHex(c byte) bool          { return isLowerHex(c) || 'A' <= c && c <= 'F' }
func isAlphanumeric(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isWord(c byte) bool         { return isAlphanumeric(c) || c == '_' }
