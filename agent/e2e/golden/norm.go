package golden

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// footing is what values are freed of.
type footing struct {
	uid, ip   string
	elsewhere map[string]string // see Recorded
}

var (
	hex64   = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	rewrite = []struct {
		from *regexp.Regexp
		to   string
	}{
		{regexp.MustCompile(`^/.*/pods/UID/`), "ROOT/pods/UID/"},
		{regexp.MustCompile(`^/.*/seccomp/`), "ROOT/seccomp/"},
		{regexp.MustCompile(`(ROOT/pods/UID/containers/[^/]+)/[0-9a-f]{8}$`), "$1/TERMLOG"},
		{regexp.MustCompile(`^/.*/([^/]+_UID)$`), "LOGS/$1"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	}
)

// norm puts a value on one footing: uids, ids, addresses, paths and times are
// named, not told, and what is empty is left out.
func (f footing) norm(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range variable(v) {
			if !empty(x) {
				out[k] = f.norm(x)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = f.norm(x)
		}
		return out
	case string:
		return f.normText(v)
	}
	return value
}

func (f footing) normText(s string) string {
	for here, there := range f.elsewhere {
		s = strings.ReplaceAll(s, here, there)
	}
	if f.uid != "" {
		s = strings.NewReplacer(f.uid, "UID", strings.ReplaceAll(f.uid, "-", "_"), "UID").Replace(s)
	}
	s = hex64.ReplaceAllString(s, "ID")
	for _, one := range strings.Split(s, ",") {
		if f.ip != "" && one == f.ip {
			s = strings.ReplaceAll(s, f.ip, "IP")
		}
	}
	for _, r := range rewrite {
		s = r.from.ReplaceAllString(s, r.to)
	}
	return s
}

// variable decodes the value of an environment variable, which is bytes.
func variable(v map[string]any) map[string]any {
	value, ok := v["value"].(string)
	if _, keyed := v["key"]; !ok || !keyed || len(v) != 2 {
		return v
	}
	if b, err := base64.StdEncoding.DecodeString(value); err == nil {
		return map[string]any{"key": v["key"], "value": string(b)}
	}
	return v
}

func empty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	}
	return value == nil
}

// flatten takes a value apart into facts; things in lists go by their names.
func flatten(out Facts, at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for k, x := range v {
			flatten(out, at+"."+k, x)
		}
	case []any:
		all := objects(v)
		if len(v) == 0 || len(all) != len(v) {
			out[at] = v
			return
		}
		key := nameKey(all[0])
		for i, x := range all {
			name := plain(x[key])
			if _, ok := x[key]; !ok {
				name = strconv.Itoa(i)
			}
			flatten(out, at+"["+name+"]", x)
		}
	default:
		out[at] = v
	}
}

func nameKey(v map[string]any) string {
	for _, k := range []string{"container_path", "key", "name", "type", "container_port", "page_size"} {
		if _, ok := v[k]; ok {
			return k
		}
	}
	return ""
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// objects returns the objects among the values of a list.
func objects(list any) []map[string]any {
	var out []map[string]any
	all, _ := list.([]any)
	for _, x := range all {
		if m, ok := x.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// text returns the string below the given names, "" if there is none.
func text(v map[string]any, names ...string) string {
	for _, name := range names[:len(names)-1] {
		v = object(v[name])
	}
	s, _ := v[names[len(names)-1]].(string)
	return s
}

func plain(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
