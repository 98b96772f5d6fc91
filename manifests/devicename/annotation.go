package devicename

import (
	"maps"
	"slices"
	"strings"
)

// Prefix is what the names of annotations start with that give CDI devices to a pod, by the CDI
// specification: cdi.k8s.io/ANYTHING: NAME,NAME.
const Prefix = "cdi.k8s.io/"

// Annotated returns the CDI names in the annotations of a pod, by the names of these annotations.
// They may be no names of CDI devices.
func Annotated(all map[string]string) map[string][]string {
	var out map[string][]string
	for key, text := range all {
		if strings.HasPrefix(key, Prefix) {
			if out == nil {
				out = map[string][]string{}
			}
			out[key] = strings.Split(text, ",")
		}
	}
	return out
}

// CDIOf returns the CDI devices that the annotations of a pod give to its containers, each once.
func CDIOf(annotations map[string]string) (names []string) {
	all := Annotated(annotations)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		for _, name := range all[key] {
			if CheckCDI(name) == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
