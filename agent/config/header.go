package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"monopod/manifests"
)

// Header is the values of an HTTP header. They may be secrets.
type Header []string

// errHeader quotes nothing of the value.
var errHeader = errors.New("values of a header are a list of strings, such as [a]")

// UnmarshalJSON accepts one value instead of a list, and numbers, too.
func (h *Header) UnmarshalJSON(text []byte) error {
	var all []json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		all = []json.RawMessage{text}
	}
	for _, one := range all {
		v := string(one)
		if json.Unmarshal(one, &v) != nil && strings.ContainsAny(v[:1], "{[") {
			return errHeader
		}
		*h = append(*h, v)
	}
	return nil
}

// ListSeparator separates the values of a flag that is given several times.
const ListSeparator = "\x00"

func header(name string, values Header) error {
	if len(validation.IsHTTPHeaderName(name)) > 0 {
		return errors.New("is not the name of a header: it is made of letters, digits and dashes")
	}
	for _, v := range values {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return errors.New("has a control character in its value, such as a line break")
		}
	}
	return nil
}

// headers is headers of requests. Its flag is NAME=VALUE, or NAME:VALUE,NAME:VALUE as for the
// kubelet; several are behind each other.
func headers(to *map[string]Header) *field[map[string]Header] {
	f := byKey(to, header)
	f.read = func(by, text string) (map[string]Header, error) {
		out := map[string]Header{}
		for one := range strings.SplitSeq(text, ListSeparator) {
			parts := []string{one}
			if k := strings.IndexAny(one, ":="); k >= 0 && one[k] == ':' {
				parts = strings.Split(one, ",")
			}
			for _, part := range parts {
				k := strings.IndexAny(part, ":=")
				if k < 0 || len(parts) > 1 && part[k] != ':' {
					return nil, fmt.Errorf("%s: write NAME=VALUE, or NAME:VALUE,NAME:VALUE as for a kubelet", by)
				}
				name, value := strings.TrimSpace(part[:k]), strings.TrimSpace(part[k+1:])
				if err := header(name, Header{value}); err != nil {
					return nil, fmt.Errorf("%s: %w", by, err) // the value may have been written in place of a name
				}
				name = textproto.CanonicalMIMEHeaderKey(name)
				out[name] = append(out[name], value)
			}
		}
		return out, nil
	}
	return f
}

// hidden replaces a secret.
const hidden = "<elided>"

// hideSecrets replaces what may be a secret.
func (c *Config) hideSecrets() {
	if c.ManifestURL != "" {
		c.ManifestURL = manifests.URLName(c.ManifestURL)
	}
	c.ManifestURLHeader = maps.Clone(c.ManifestURLHeader)
	for name, values := range c.ManifestURLHeader {
		c.ManifestURLHeader[name] = slices.Repeat(Header{hidden}, len(values))
	}
}
