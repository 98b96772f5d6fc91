package golden

import (
	"path"
	"regexp"
	"strings"
)

// volatile are facts that depend on the moment of the recording.
var volatile = regexp.MustCompile(`config\.seen|\.restarted$|envs\[PODIPS?\]`)

// containerCgroup is what runtimes call the cgroup of a container: its id, in most
// cases after their own name. CRI-O's crio-conmon-ID is none.
var containerCgroup = regexp.MustCompile(`^(?:cri-containerd-|crio-)?([0-9a-f]{64})(?:\.scope)?$`)

// View returns the facts of a recording: the first sandbox request, the first
// request per container, the grace given at stop, the cgroup files, and the
// reported status.
func View(r Recorded) Facts {
	v := viewer{facts: Facts{}, names: map[string]string{}, footing: footing{
		uid: text(r.Pod, "metadata", "uid"), ip: text(r.Pod, "status", "podIP"), elsewhere: r.Elsewhere}}
	v.calls(r.Calls)
	for dir, files := range r.Cgroups {
		v.cgroup(dir, files)
	}
	v.status(r.Pod)
	for k := range v.facts {
		if volatile.MatchString(k) {
			delete(v.facts, k)
		}
	}
	return v.facts
}

type viewer struct {
	facts Facts
	footing
	names   map[string]string // of containers by id
	cycling []string          // containers that were restarted
}

func (v *viewer) calls(calls []Call) {
	v.facts["ran"] = false
	for _, c := range calls {
		config, _ := c.Request["config"].(map[string]any)
		switch c.Method {
		case "RunPodSandbox":
			v.first("sandbox", config)
		case "CreateContainer":
			name := text(config, "metadata", "name")
			if id := text(c.Response, "container_id"); id != "" {
				v.names[id] = name
			}
			v.first("container["+name+"]", config)
		case "StartContainer":
			v.facts["ran"] = true
		case "StopContainer":
			key := "stop[" + or(v.names[text(c.Request, "container_id")], "?") + "].timeout"
			if _, seen := v.facts[key]; !seen {
				v.facts[key] = or(text(c.Request, "timeout"), "0")
			}
		}
	}
}

// cgroup takes the files of a cgroup that is the pod's or one of its containers'.
func (v *viewer) cgroup(dir string, files map[string]string) {
	last := path.Base(dir)
	who := ""
	if m := containerCgroup.FindStringSubmatch(last); m != nil {
		who = v.names[m[1]]
	}
	if who == "" && v.uid != "" && (last == "pod"+v.uid || strings.HasSuffix(last, "-pod"+strings.ReplaceAll(v.uid, "-", "_")+".slice")) {
		who = "pod"
	}
	if who == "" {
		return
	}
	for file, text := range files {
		v.facts["cgroup["+who+"]."+file] = text
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
// restarting container was seen is chance, and whether a pull that failed was
// tried a second time.
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
	if said == "waiting/ImagePullBackOff" {
		said = "waiting/ErrImagePull"
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
	own := regexp.MustCompile(`^(cgroup\[` + regexp.QuoteMeta(name) + `\]|status\.\w+\[` + regexp.QuoteMeta(name) +
		`\]\.(ready|started|resources|allocatedResources|user))`)
	for k := range v.facts {
		if own.MatchString(k) || strings.HasPrefix(k, "status.cond[") && strings.Contains(k, "Ready") {
			delete(v.facts, k)
		}
	}
}
