package page

import (
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/message"
	"monopod/agent/print"
	"monopod/agent/status"
	"monopod/manifests/defaults"
)

// eventsMost is how many events a page has, the latest first.
const eventsMost = 50

// podPage is the page of one pod.
type podPage struct {
	frame
	Row        row
	Facts      facts
	Words      []print.Word
	FileWords  []string // what is wrong with its manifest
	Containers []container
	Conditions []condition
	Volumes    facts
	Events     []event
	Cut        bool // there are earlier events
}

type container struct {
	Kind, Name, Word, Class string
	Facts                   facts
	Log, Former             string // paths of its log, and that of its last attempt; "": not for this reader
}

// condition is one of a pod or of the node; Class: whether it is as it should be.
type condition struct{ Type, Status, Class, Since, Reason, Message string }

type event struct{ Type, Class, Reason, Seen, Object, Message string }

// Pod writes the page of a pod; events are its own, the latest last.
func Pod(w io.Writer, f *Facts, p *v1.Pod, events []v1.Event) error {
	versions := f.versions()
	g := podPage{frame: f.frame("pods", print.ShortName(p)), Row: f.row(p, versions), Words: print.WordsOf(p, f.Now)}
	files := f.files(p)
	for _, file := range files {
		g.FileWords = append(g.FileWords, print.FileWords(file, f.Manifests.Base(), true)...)
	}
	g.Facts = f.podFacts(p, files, versions.of(p))
	for _, c := range p.Spec.InitContainers {
		kind := "init container"
		if defaults.IsSidecar(&c) {
			kind = "sidecar"
		}
		g.Containers = append(g.Containers, f.container(p, kind, &c, p.Status.InitContainerStatuses))
	}
	for _, c := range p.Spec.Containers {
		g.Containers = append(g.Containers, f.container(p, "container", &c, p.Status.ContainerStatuses))
	}
	for _, c := range p.Status.Conditions {
		g.Conditions = append(g.Conditions, f.condition(string(c.Type), c.Status, v1.ConditionTrue, c.LastTransitionTime.Time, c.Reason, c.Message))
	}
	for k := range p.Spec.Volumes {
		g.Volumes.add(p.Spec.Volumes[k].Name, print.VolumeWords(&p.Spec.Volumes[k]))
	}
	g.Events, g.Cut = f.events(events)
	return execute(w, "pod.html", g)
}

// files returns the manifests that give a pod, none if they are not for this reader.
func (f *Facts) files(p *v1.Pod) (all []status.File) {
	if f.Manifests == nil {
		return nil
	}
	for _, file := range f.Manifests.Files {
		if print.Gives(file, p) {
			all = append(all, file)
		}
	}
	return all
}

// podFacts returns what a pod is.
func (f *Facts) podFacts(p *v1.Pod, files []status.File, versions []version) (all facts) {
	all.code("Namespace", p.Namespace)
	all.code("Full name", p.Name)
	all.code("UID", string(p.UID))
	all.add("Phase", string(p.Status.Phase))
	all.add("Started", f.ago(startOf(p)))
	var ips []string
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	all.code("IP", ips...)
	if p.Spec.HostNetwork {
		all.add("Network", "the machine's")
	}
	all.code("Version", hashOf(p))
	for _, file := range files {
		all.code("Manifest", file.Path)
	}
	for _, v := range versions {
		isGiven := func(file status.File) bool { return file.Path == v.File }
		if !slices.ContainsFunc(files, isGiven) {
			all.code("Also in", v.File)
		}
		all.add("Its version", print.JoinWords(string(v.State), placeOf(v), v.Reason))
		if v.Hash != v.Running {
			all.code("Its hash", string(v.Hash))
		}
	}
	all.add("Restart policy", string(p.Spec.RestartPolicy))
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		all.add("Grace period", fmt.Sprintf("%d s", *s))
	}
	all.add("QoS class", string(p.Status.QOSClass))
	all.add("Priority class", p.Spec.PriorityClassName)
	var labels []string
	for k, v := range p.Labels {
		labels = append(labels, k+"="+v)
	}
	slices.Sort(labels)
	all.code("Labels", labels...)
	return all
}

func placeOf(v version) string {
	if v.Line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d, column %d", v.Line, v.Column)
}

func startOf(p *v1.Pod) time.Time {
	if p.Status.StartTime == nil {
		return time.Time{}
	}
	return p.Status.StartTime.Time
}

// ago returns a moment and how long ago it was, "" if it is not known.
func (f *Facts) ago(t time.Time) string {
	if !print.KnownTime(t, f.Now) {
		return ""
	}
	return fmt.Sprintf("%s ago (%s)", print.Ago(t, f.Now), message.Time(t))
}

func (f *Facts) container(p *v1.Pod, kind string, c *v1.Container, statuses []v1.ContainerStatus) container {
	s, _ := print.StatusOf(statuses, c.Name)
	out := container{Kind: kind, Name: c.Name}
	out.Word, out.Class = f.stateOf(&s)
	out.Facts.code("Image", c.Image)
	out.Facts.add("Last state", f.endOf(s.LastTerminationState.Terminated))
	out.Facts.add("Restarts", fmt.Sprint(s.RestartCount))
	out.Facts.code("Command", strings.Join(slices.Concat(c.Command, c.Args), " "))
	ports, host := print.PortWords(c)
	out.Facts.code("Ports", ports...)
	out.Facts.code("Host ports", host...)
	out.Facts.code("Requests", amounts(c.Resources.Requests)...)
	out.Facts.code("Limits", amounts(c.Resources.Limits)...)
	out.Facts.probe("Startup probe", c.StartupProbe)
	out.Facts.probe("Liveness probe", c.LivenessProbe)
	out.Facts.probe("Readiness probe", c.ReadinessProbe)
	if l := c.Lifecycle; l != nil {
		out.Facts.hook("After its start", l.PostStart)
		out.Facts.hook("Before its stop", l.PreStop)
	}
	out.Facts.code("Mounts", print.MountWords(c)...)
	if f.Logs && s.ContainerID != "" {
		out.Log = (&url.URL{Path: path.Join("/containerLogs", p.Namespace, p.Name, c.Name), RawQuery: "tailLines=500"}).String()
		if s.LastTerminationState.Terminated != nil {
			out.Former = out.Log + "&previous=true"
		}
	}
	return out
}

func (f *facts) probe(key string, p *v1.Probe) {
	if p != nil {
		f.add(key, print.ProbeWords(p))
	}
}

func (f *facts) hook(key string, h *v1.LifecycleHandler) {
	if h != nil {
		f.add(key, print.HookWords(h))
	}
}

// amounts returns resources, such as "cpu 250m".
func amounts(list v1.ResourceList) (all []string) {
	for name, q := range list {
		all = append(all, string(name)+" "+(*resource.Quantity)(&q).String())
	}
	slices.Sort(all)
	return all
}

// stateOf returns the state of a container in words.
func (f *Facts) stateOf(s *v1.ContainerStatus) (text, of string) {
	switch {
	case s.State.Running != nil:
		text = "Running"
		if at := s.State.Running.StartedAt.Time; print.KnownTime(at, f.Now) {
			text += " for " + print.Ago(at, f.Now)
		}
		if !s.Ready {
			return text + ", not ready", class(print.OnTheWay)
		}
		return text, class(print.Well)
	case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
		return f.endOf(s.State.Terminated), class(print.Over)
	case s.State.Terminated != nil:
		return f.endOf(s.State.Terminated), class(print.Trouble)
	case s.State.Waiting == nil:
		return "Waiting", class(print.OnTheWay)
	case s.State.Waiting.Reason == "":
		of = class(print.OnTheWay)
	default:
		of = class(print.HealthOf(s.State.Waiting.Reason, false))
	}
	return print.OneLine(print.JoinWords(s.State.Waiting.Reason, s.State.Waiting.Message)), of
}

// endOf returns how a container ended, "" if it has not.
func (f *Facts) endOf(t *v1.ContainerStateTerminated) string {
	if t == nil {
		return ""
	}
	text := fmt.Sprintf("%s (%s)", print.EndWord(t), print.EndedWith(t))
	if print.KnownTime(t.FinishedAt.Time, f.Now) {
		text += fmt.Sprintf(" %s ago", print.Ago(t.FinishedAt.Time, f.Now))
	}
	return print.OneLine(print.JoinWords(text, t.Message))
}

func (f *Facts) condition(kind string, is, good v1.ConditionStatus, since time.Time, reason, text string) condition {
	of := class(print.Well)
	if is != good {
		of = class(print.OnTheWay)
	}
	return condition{print.OneLine(kind), string(is), of, print.Ago(since, f.Now), print.OneLine(reason), print.OneLine(text)}
}

// events returns the latest of those events, the latest first, and whether there are more.
func (f *Facts) events(all []v1.Event) (out []event, cut bool) {
	for k := len(all) - 1; k >= 0; k-- {
		if len(out) == eventsMost {
			return out, true
		}
		e := &all[k]
		of := class(print.Over)
		if e.Type == v1.EventTypeWarning {
			of = class(print.OnTheWay)
		}
		out = append(out, event{print.OneLine(e.Type), of, print.OneLine(e.Reason), print.LastSeen(e, f.Now), print.OneLine(print.ContainerOfEvent(e)), print.OneLine(print.EventText(e, f.Now))})
	}
	return out, false
}
