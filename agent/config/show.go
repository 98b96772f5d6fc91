package config

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/manifests/decode"
)

// fields returns the settings by their names in a file, as values of JSON.
func (c Config) fields() map[string]any {
	out := map[string]any{}
	for _, r := range rows(&c) {
		if r.name != "" {
			out[r.name] = shown(r.get())
		}
	}
	if c.ImagePulls == AllPulls { // in a file it is unlimited if absent
		delete(out, "maxParallelImagePulls")
	}
	if c.CgroupDriver == "auto" && c.FallbackDriver != "" {
		out["cgroupDriver"] = c.FallbackDriver
	}
	return out
}

// shown returns a value as in a file.
func shown(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return v.String()
	case resource.Quantity:
		return v.String()
	case Folders:
		return v.shown()
	case v1.ResourceList:
		out := map[string]string{}
		for name, q := range v {
			out[string(name)] = q.String()
		}
		return out
	case map[string]string:
		if v == nil {
			return map[string]string{}
		}
	case map[string]Header:
		if v == nil {
			return map[string]Header{}
		}
	case map[string]Device:
		if v == nil {
			return map[string]Device{}
		}
	case []string:
		if v == nil {
			return []string{}
		}
	case []ShutdownPriority:
		if v == nil {
			return []ShutdownPriority{}
		}
	}
	return v
}

// Configz returns the settings as a complete file of settings, without secrets.
func (c Config) Configz() map[string]any {
	c.hideSecrets()
	out := decode.Fields{"apiVersion": fileVersion, "kind": fileKind}
	for name, value := range c.fields() {
		put(out, name, value)
	}
	return out
}

// Changed returns the names of the settings that differ between a and b, in the order of a file:
// those that take effect at once, and those that do after a restart.
func Changed(a, b Config) (now, later []string) {
	was, is := a.fields(), b.fields()
	for _, r := range rows(&b) {
		switch {
		case reflect.DeepEqual(was[r.name], is[r.name]):
		case r.when == live:
			now = append(now, r.name)
		default:
			later = append(later, r.name)
		}
	}
	return now, later
}

// TakeLive returns c with those settings of next that take effect at once.
func (c Config) TakeLive(next Config) Config {
	theirs := rows(&next)
	for k, r := range rows(&c) {
		if r.when == live {
			r.set(theirs[k].get())
		}
	}
	c.Absent = next.Absent
	return c
}

// PrintDefaults writes a file of settings in which each has its default, and its meaning.
func PrintDefaults(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Settings of monopod, each with what counts where it is not given; `monopod run --config FILE`.\n" +
		"# Fields are named and mean as in KubeletConfiguration but those marked (ours). Flags win over the file.\n" +
		"apiVersion: " + fileVersion + "\nkind: " + fileKind + "\n")
	var in []string // objects
	c := Default()
	for _, r := range rows(&c) {
		if r.name == "" {
			continue
		}
		path := strings.Split(r.name, ".")
		objects, name := path[:len(path)-1], path[len(path)-1]
		b.WriteString("\n")
		for k, object := range objects {
			if k >= len(in) || in[k] != object {
				fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", k), object)
			}
		}
		in = objects
		indent := strings.Repeat("  ", len(objects))
		for line := range strings.Lines(r.about) {
			fmt.Fprintf(&b, "%s# %s\n", indent, strings.TrimRight(line, "\n"))
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, name, inYAML(shown(r.get())))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// PrintFirst prints a first file of settings: with that folder of manifests, and all else as
// comments.
func PrintFirst(w io.Writer, manifests string) error {
	var all, out strings.Builder
	if err := PrintDefaults(&all); err != nil {
		return err
	}
	for line := range strings.Lines(all.String()) {
		name, _, _ := strings.Cut(line, ":")
		switch {
		case name == "staticPodPath":
			line = "staticPodPath: " + strconv.Quote(manifests) + "\n"
		case name == "apiVersion", name == "kind", strings.TrimSpace(line) == "", strings.HasPrefix(line, "#"):
		default:
			line = "#" + line
		}
		out.WriteString(line)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// inYAML returns a default as in a file.
func inYAML(v any) string {
	switch v := v.(type) {
	case string:
		if v == "" {
			return `""`
		}
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	case map[string]string, map[string]Header, map[string]Device: // none has a default
		return "{}"
	}
	return fmt.Sprint(v)
}
