package agent

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// recorded is what an agent did with one pod, as JSON values.
type recorded struct {
	calls []recordedCall
	pod   map[string]any // as reported while it ran; nil: not at all
}

// recordedCall is one CRI call that changes something. response is nil if it failed.
type recordedCall struct {
	name              string
	request, response map[string]any
}

// facts are what two recordings are compared by: a path to a value of JSON,
// without what differs from run to run.
type facts map[string]any

// volatile are facts that depend on the moment of the recording.
var volatile = regexp.MustCompile(`config\.seen|\.restarted$|envs\[PODIPS?\]`)

// view returns the facts of a recording: the first sandbox request, the first
// request per container, the grace given at stop, and the reported status.
func view(r recorded) facts {
	v := viewer{facts: facts{}, footing: footing{
		uid: text(r.pod, "metadata", "uid"), ip: text(r.pod, "status", "podIP")}}
	v.calls(r.calls)
	v.status(r.pod)
	for k := range v.facts {
		if volatile.MatchString(k) {
			delete(v.facts, k)
		}
	}
	return v.facts
}

// footing is what values are freed of.
type footing struct{ uid, ip string }

type viewer struct {
	facts facts
	footing
	cycling []string // containers that were restarted
}

func (v *viewer) calls(calls []recordedCall) {
	names := map[string]string{} // of containers by id
	v.facts["ran"] = false
	for _, c := range calls {
		config, _ := c.request["config"].(map[string]any)
		switch c.name {
		case "RunPodSandbox":
			v.first("sandbox", config)
		case "CreateContainer":
			name := text(config, "metadata", "name")
			if id := text(c.response, "container_id"); id != "" {
				names[id] = name
			}
			v.first("container["+name+"]", config)
		case "StartContainer":
			v.facts["ran"] = true
		case "StopContainer":
			key := "stop[" + or(names[text(c.request, "container_id")], "?") + "].timeout"
			if _, seen := v.facts[key]; !seen {
				v.facts[key] = or(text(c.request, "timeout"), "0")
			}
		}
	}
}

// first takes the facts of a config unless there are some of that name.
func (v *viewer) first(at string, config map[string]any) {
	for k := range v.facts {
		if strings.HasPrefix(k, at+".") {
			return
		}
	}
	v.put(at, config)
}

func (v *viewer) put(at string, value any) { flatten(v.facts, at, v.norm(value)) }

func (v *viewer) status(pod map[string]any) {
	v.facts["listed"] = pod != nil
	if pod == nil {
		return
	}
	st, _ := pod["status"].(map[string]any)
	for _, k := range []string{"phase", "reason", "qosClass"} {
		v.facts["status."+k] = text(st, k)
	}
	v.facts["status.hasPodIP"] = v.ip != ""
	for _, c := range objects(st["conditions"]) {
		v.facts["status.cond["+text(c, "type")+"]"] = text(c, "status") + "/" + text(c, "reason")
	}
	for _, kind := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, c := range objects(st[kind]) {
			v.container("status."+kind+"["+text(c, "name")+"]", c)
		}
	}
	for _, name := range v.cycling {
		v.forgetMoment(name)
	}
}

// container takes the facts of one container's status. Where in its cycle a
// restarting container was seen is chance.
func (v *viewer) container(at string, c map[string]any) {
	state, detail := "none", map[string]any{}
	for k, d := range object(c["state"]) {
		state, detail = k, object(d)
	}
	said := state + "/" + text(detail, "reason")
	if code, ok := detail["exitCode"]; ok {
		said += "/" + plain(code)
	}
	last := object(object(c["lastState"])["terminated"])
	if len(last) == 0 && state == "terminated" {
		last = detail
	}
	if n, _ := c["restartCount"].(float64); n > 0 {
		v.cycling = append(v.cycling, text(c, "name"))
		said, detail = "cycling/"+text(last, "reason")+"/"+plain(last["exitCode"]), nil
	}
	v.facts[at+".state"] = said
	if m := text(detail, "message"); m != "" && state == "terminated" {
		v.facts[at+".message"] = v.norm(m)
	}
	for _, k := range []string{"ready", "started", "image"} {
		v.facts[at+"."+k] = c[k]
	}
	v.facts[at+".imageID"] = v.norm(text(c, "imageID"))
	for _, k := range []string{"allocatedResources", "resources", "volumeMounts", "user"} {
		if value, ok := c[k]; ok {
			v.put(at+"."+k, value)
		}
	}
}

// forgetMoment drops what depends on where in its cycle a container was seen.
func (v *viewer) forgetMoment(name string) {
	own := regexp.MustCompile(`^status\.\w+\[` + regexp.QuoteMeta(name) + `\]\.(ready|started|resources|allocatedResources|user)`)
	for k := range v.facts {
		if own.MatchString(k) || strings.HasPrefix(k, "status.cond[") && strings.Contains(k, "Ready") {
			delete(v.facts, k)
		}
	}
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
func flatten(out facts, at string, value any) {
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
