package print

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/status"
)

// Describe prints everything that is known of a pod, in the style of `kubectl describe pod`.
func Describe(w *bytes.Buffer, p *v1.Pod, m status.Manifests, happened []v1.Event, f Format) {
	d := &description{w: w, pod: p, manifests: m, now: f.Now, color: f.Color, columns: f.Columns}
	d.print(happened)
}

// PodsAs prints pods as json or yaml: a v1 Pod, or a PodList of several.
func PodsAs(w io.Writer, output string, pods []v1.Pod) error {
	for i := range pods {
		pods[i].TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	}
	if len(pods) == 1 {
		return As(w, output, pods[0])
	}
	return podListAs(w, output, pods)
}

// podListAs prints pods as a PodList in json or yaml. One of none has an empty list, as with kubectl, and
// no null, which programs cannot loop over.
func podListAs(w io.Writer, output string, pods []v1.Pod) error {
	if pods == nil {
		pods = []v1.Pod{}
	}
	return As(w, output, v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: pods})
}

// description is the text about one pod.
type description struct {
	w         *bytes.Buffer
	pod       *v1.Pod
	manifests status.Manifests
	now       time.Time
	color     bool
	columns   int // of the terminal; 0: any
}

// valueColumn is the column of values behind keys, which are indented by depth.
const valueColumn = 20

// line prints a key and its value. Text from elsewhere cannot control the terminal.
func (d *description) line(depth int, key, value string) {
	key = strings.Repeat(" ", depth) + key + ":"
	if value = OneLine(value); value == "" {
		fmt.Fprintln(d.w, key)
		return
	}
	d.wrap(fmt.Sprintf("%-*s %s", valueColumn-1, key, value), depth)
}

// wrap prints a line; what does not fit into the terminal is printed below the values, or if that
// leaves little room below the key.
func (d *description) wrap(line string, depth int) {
	fmt.Fprintln(d.w, wrapped(line, d.columns, d.indent(depth)))
}

func (d *description) indent(depth int) int {
	if d.columns > 0 && d.columns < valueColumn+proseRoom {
		return depth + 2
	}
	return valueColumn
}

// lineIf prints a line if there is a value.
func (d *description) lineIf(depth int, key, value string) {
	if value != "" {
		d.line(depth, key, value)
	}
}

// lines prints a key with several values below each other.
func (d *description) lines(depth int, key string, values []string) {
	d.line(depth, key, first(values, "<none>"))
	for k := 1; k < len(values); k++ {
		d.wrap(fmt.Sprintf("%*s%s", d.indent(depth), "", OneLine(values[k])), depth)
	}
}

func first(values []string, none string) string {
	if len(values) == 0 {
		return none
	}
	return values[0]
}

func (d *description) print(happened []v1.Event) {
	d.identity()
	p := d.pod
	if len(p.Spec.InitContainers) > 0 {
		d.containers("Init Containers", p.Spec.InitContainers, p.Status.InitContainerStatuses)
	}
	d.containers("Containers", p.Spec.Containers, p.Status.ContainerStatuses)
	d.conditions()
	d.volumes()
	d.lineIf(0, "QoS Class", string(p.Status.QOSClass))
	d.lines(0, "Node-Selectors", pairs(p.Spec.NodeSelector, "="))
	d.problems()
	d.events(happened)
}

// identity prints the pod's identity and its state as a whole.
func (d *description) identity() {
	p := d.pod
	d.line(0, "Name", ShortName(p))
	d.lineIf(0, "Full Name", different(p.Name, ShortName(p)))
	d.line(0, "Namespace", p.Namespace)
	d.line(0, "UID", string(p.UID))
	d.line(0, "Node", nodeOf(p))
	if p.Status.StartTime != nil {
		d.lineIf(0, "Start Time", d.ago(*p.Status.StartTime))
	}
	d.line(0, "Manifest", d.manifest())
	d.versions()
	d.lines(0, "Labels", pairs(p.Labels, "="))
	d.lines(0, "Annotations", pairs(p.Annotations, ": "))
	d.line(0, "Status", d.state())
	d.lineIf(0, "Reason", p.Status.Reason)
	d.lineIf(0, "Message", p.Status.Message)
	d.lineIf(0, "Priority Class", p.Spec.PriorityClassName)
	d.lineIf(0, "Runtime Class", value(p.Spec.RuntimeClassName))
	if p.Spec.HostNetwork {
		d.line(0, "Host Network", "true")
	}
	var ips []string
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	d.lines(0, "IP", ips)
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		d.line(0, "Grace Period", fmt.Sprintf("%ds", *s))
	}
	d.lineIf(0, "Restart Policy", string(p.Spec.RestartPolicy))
}

// manifest returns the path of the pod's file.
func (d *description) manifest() string {
	for _, f := range d.manifests.Files {
		if Gives(f, d.pod) {
			return f.Path
		}
	}
	return "<none>"
}

// state returns the phase, and the word of `monopod ps` if that tells more.
func (d *description) state() string {
	phase, word := string(d.pod.Status.Phase), Summarize(d.pod, d.now).Word
	if word == phase || word == "" || word == "Completed" && phase == string(v1.PodSucceeded) {
		return phase
	}
	return fmt.Sprintf("%s (%s)", phase, word)
}

// different returns a unless it is b.
func different(a, b string) string {
	if a == b {
		return ""
	}
	return a
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func nodeOf(p *v1.Pod) string {
	if p.Status.HostIP == "" {
		return p.Spec.NodeName
	}
	return p.Spec.NodeName + "/" + p.Status.HostIP
}

// ago returns a moment, and how long ago that was; "" if it is not known.
func (d *description) ago(t metav1.Time) string {
	if !KnownTime(t.Time, d.now) {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", clock(t.Time), Ago(t.Time, d.now))
}

// pairs returns the content of a map as lines, sorted.
func pairs(m map[string]string, between string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+between+m[k])
	}
	return out
}

func (d *description) conditions() {
	if len(d.pod.Status.Conditions) == 0 {
		return
	}
	d.line(0, "Conditions", "")
	t := &Table{columns: d.columns}
	t.Line("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")
	for _, c := range d.pod.Status.Conditions {
		since := Ago(c.LastTransitionTime.Time, d.now)
		t.Line(string(c.Type), string(c.Status), since, c.Reason, c.Message)
	}
	t.printIndented(d.w)
}

// problems prints the pod's problems, in the words of `monopod ps`.
func (d *description) problems() {
	var words []string
	for _, w := range WordsOf(d.pod, d.now) {
		words = append(words, w.String())
	}
	for _, f := range d.manifests.Files {
		if Gives(f, d.pod) {
			words = append(words, FileWords(f, d.manifests.Base(), true)...)
		}
	}
	if len(words) == 0 {
		return
	}
	d.line(0, "Problems", "")
	for _, word := range words {
		fmt.Fprintln(d.w, "  "+wrapped(word, max(d.columns-2, 0), 4))
	}
}

// events prints the events, in kubectl's columns.
func (d *description) events(all []v1.Event) {
	if len(all) == 0 {
		d.line(0, "Events", "<none>")
		return
	}
	d.line(0, "Events", "")
	t := &Table{columns: d.columns}
	t.Line("TYPE", "REASON", "AGE", "CONTAINER", "MESSAGE")
	for i := range all {
		row := plainCells([]string{all[i].Type, all[i].Reason, LastSeen(&all[i], d.now), ContainerOfEvent(&all[i]), EventText(&all[i], d.now)})
		if d.color && all[i].Type == v1.EventTypeWarning {
			row[0].Color = yellow
		}
		t.add(row...)
	}
	t.printIndented(d.w)
}
