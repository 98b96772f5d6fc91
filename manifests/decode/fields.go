package decode

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fields returns the types of a struct's fields by their JSON names; nil for another type.
func (r *Reader) fields(t reflect.Type) map[string]reflect.Type {
	all, ok := r.known[t]
	if ok || t.Kind() != reflect.Struct {
		return all
	}
	all = make(map[string]reflect.Type, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Anonymous && name == "":
			maps.Copy(all, r.fields(f.Type))
		case name != "" && name != "-":
			all[name] = f.Type
		}
	}
	if r.known == nil {
		r.known = map[reflect.Type]map[string]reflect.Type{}
	}
	r.known[t] = all
	return all
}

// Join appends a path or a name to the path of its parent.
func Join(base, path string) string {
	if base == "" || path == "" {
		return base + path
	}
	return base + "." + path
}

// within reports whether path is outer or a path below it.
func within(outer, path string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (outer == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Nearest returns the known name that a misspelt one most likely means; "" if none is similar.
func Nearest[V any](name string, known map[string]V) string {
	best, bestDistance := "", max(2, min(len(name)/4, 4))+1
	if len(name) > 60 {
		return ""
	}
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if d := Distance(strings.ToLower(name), strings.ToLower(k)); d < bestDistance && d < len(k) {
			best, bestDistance = k, d
		}
	}
	return best
}

// Distance is the Levenshtein distance in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
