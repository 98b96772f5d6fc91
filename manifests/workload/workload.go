// Package workload makes the one pod of a Deployment, StatefulSet, DaemonSet, ReplicaSet or Job.
package workload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/annotations"
	"monopod/manifests/decode"
)

// Workload is a Deployment or the like and its pod: a single machine runs one.
type Workload struct {
	Pod  *v1.Pod // without defaults and identity
	Idle bool    // the pod must not run: there are no replicas, or it is suspended

	templated
	replicas *int32      // nil: one
	set      *setSpec    // of a StatefulSet
	job      *jobSpec    // of a Job
	claims   []string    // fields of the claim templates that became the pod's last volumes
	c        complainant // receives the problems
}

// complainant receives a problem at a field of a workload. It drops those of fields that could not
// be read, which have been reported already.
type complainant func(at string, m decode.Message, kind complaint)

// complaint is the severity of a problem.
type complaint int

const (
	wrong complaint = iota
	warning
	note // see decode.Problem
)

// refuse reports an error with fixed words as detail; warn and note report fixed words.
func (c complainant) refuse(e *field.Error) { c(e.Field, decode.Invalid(e), wrong) }
func (c complainant) warn(at, words string) { c(at, decode.Fixed(words), warning) }
func (c complainant) note(at, words string) { c(at, decode.Fixed(words), note) }

// Read reads an object of a kind that Version supports, and reports the problems of the workload.
// The caller validates its pod.
func Read(r *decode.Reader, o decode.Object, kind string) *Workload {
	w, meta := kinds[kind].read(r, o)
	w.c = func(at string, m decode.Message, kind complaint) {
		if r.IsMisread(o, at) {
			return
		}
		before := len(r.Problems)
		r.Report(o, decode.Find(o.Node, at), decode.Join(o.Path, at), m, kind != wrong)
		if kind == note && len(r.Problems) > before {
			last := &r.Problems[before]
			last.Note = last.Warning
		}
	}
	for _, name := range slices.Sorted(maps.Keys(meta.Annotations)) {
		if _, misspelt := annotations.Misspelt(name, annotations.InManifests); misspelt || annotations.MeansMonopod(name) {
			w.c.warn("metadata.annotations["+name+"]", "has no effect here: write it below spec.template.metadata.annotations")
		}
	}
	w.Idle = w.check()
	w.Pod = w.pod(meta)
	return w
}

// pod returns the workload's one pod.
func (w *Workload) pod(meta metav1.ObjectMeta) *v1.Pod {
	pod := &v1.Pod{Spec: *w.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = meta.Name, meta.Namespace
	pod.Labels, pod.Annotations = w.Template.Labels, w.Template.Annotations
	pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", ""
	if w.set != nil && pod.Name != "" {
		w.member(pod)
	}
	if w.job != nil && w.job.ActiveDeadlineSeconds != nil {
		if own := pod.Spec.ActiveDeadlineSeconds; own == nil || *own > *w.job.ActiveDeadlineSeconds {
			pod.Spec.ActiveDeadlineSeconds = w.job.ActiveDeadlineSeconds
		}
	}
	if w.job != nil {
		w.retry(pod)
	}
	return pod
}

// backoffLimit is the API server's default for how often a Job's pod is retried.
const backoffLimit = 6

// retry has a Job's pod retried when it fails, as often as the Job allows. Nothing is set for
// restartPolicy Never with 0 retries: the pod runs so anyway.
func (w *Workload) retry(pod *v1.Pod) {
	limit := int32(backoffLimit)
	if w.job.BackoffLimit != nil {
		limit = *w.job.BackoffLimit
	}
	if p := pod.Spec.RestartPolicy; p == v1.RestartPolicyNever && limit > 0 || p == v1.RestartPolicyOnFailure && limit >= 0 {
		annotations.SetJobRetries(pod, limit)
	}
}

// member gives a pod the identity of the first pod of a StatefulSet: a stable name, which is also
// its host name, and its own volumes.
func (w *Workload) member(pod *v1.Pod) {
	ordinal := strconv.Itoa(int(w.set.ordinal()))
	set := pod.Name
	pod.Name = set + "-" + ordinal
	pod.Labels = labels.Merge(pod.Labels, labels.Set{
		"statefulset.kubernetes.io/pod-name": pod.Name, "apps.kubernetes.io/pod-index": ordinal})
	pod.Spec.Subdomain = w.set.ServiceName
	if len(validation.IsDNS1123Label(pod.Name)) == 0 {
		pod.Spec.Hostname = pod.Name
	}
	for i, claim := range w.set.VolumeClaimTemplates {
		v := v1.Volume{Name: claim.Name}
		v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + pod.Name}
		if k := slices.IndexFunc(w.Template.Spec.Volumes, func(o v1.Volume) bool { return o.Name == v.Name }); k >= 0 {
			pod.Spec.Volumes[k] = v
			continue
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		w.claims = append(w.claims, fmt.Sprintf("spec.volumeClaimTemplates[%d].metadata.name", i))
	}
}

// Claims returns the names of the claims that a StatefulSet's templates give its pod.
func (w *Workload) Claims() (names []string) {
	if w.set == nil || w.Pod == nil {
		return nil
	}
	for _, claim := range w.set.VolumeClaimTemplates {
		names = append(names, claim.Name+"-"+w.Pod.Name)
	}
	return names
}

// At returns the field of the workload that sets a field of its pod.
func (w *Workload) At(path string) string {
	switch path {
	case "metadata.name", "metadata.namespace", "metadata.uid":
		return path
	case "spec.subdomain":
		if w.set != nil {
			return "spec.serviceName"
		}
	case "spec.activeDeadlineSeconds":
		if w.job != nil && w.job.ActiveDeadlineSeconds != nil {
			return path
		}
	}
	if rest, ok := strings.CutPrefix(path, "spec.volumes["); ok {
		number, _, _ := strings.Cut(rest, "]")
		i, _ := strconv.Atoi(number)
		if i -= len(w.Template.Spec.Volumes); i >= 0 && i < len(w.claims) {
			return w.claims[i]
		}
	}
	return "spec.template." + path
}

// check reports the problems of the workload itself, and returns whether it has no pod now.
func (w *Workload) check() (idle bool) {
	s := &w.Template.Spec
	const account = "has no effect here: there is no API server to ask with a token"
	if s.ServiceAccountName != "" {
		w.c.note("spec.template.spec.serviceAccountName", account)
	}
	if s.DeprecatedServiceAccount != "" {
		w.c.note("spec.template.spec.serviceAccount", account)
	}
	if w.job != nil {
		return w.checkJob()
	}
	w.checkSelector()
	if p := s.RestartPolicy; p != "" && p != v1.RestartPolicyAlways {
		always := []v1.RestartPolicy{v1.RestartPolicyAlways}
		w.c.refuse(field.NotSupported(field.NewPath("spec.template.spec.restartPolicy"), p, always))
	}
	if s.ActiveDeadlineSeconds != nil {
		w.c.refuse(field.Forbidden(field.NewPath("spec.template.spec.activeDeadlineSeconds"),
			"only a Pod or a Job may have one"))
	}
	return w.count("replicas", w.replicas)
}

// count checks the number of pods, and returns whether that is 0.
func (w *Workload) count(name string, n *int32) (none bool) {
	at := "spec." + name
	switch {
	case n == nil || *n == 1:
	case *n == 0:
		w.c.warn(at, "is 0: no pod of it runs")
		return true
	case *n < 0:
		w.c.refuse(field.Invalid(field.NewPath(at), *n, "must be greater than or equal to 0"))
	default:
		remedy := fmt.Sprintf("this machine runs one pod of it; write %s: 1, or a document with a name of its own for each pod", name)
		w.c(at, decode.Message{Full: fmt.Sprintf("is %d: %s", *n, remedy), Plain: remedy}, wrong)
	}
	return false
}

// checkSelector compares the selector with the labels of the template, as the API server does.
func (w *Workload) checkSelector() {
	at := field.NewPath("spec.selector")
	if w.Selector == nil {
		w.c.refuse(field.Required(at, "write matchLabels with labels of the template"))
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(w.Selector)
	switch {
	case err != nil:
		e := field.Invalid(at, field.OmitValueType{}, err.Error())
		w.c(e.Field, decode.Message{Full: e.ErrorBody(), Plain: "not a valid selector"}, wrong)
	case selector.Empty():
		w.c.refuse(field.Invalid(at, field.OmitValueType{},
			"an empty selector selects all pods: write matchLabels with labels of the template"))
	case !selector.Matches(labels.Set(w.Template.Labels)):
		w.c("spec.template.metadata.labels", decode.Message{
			Full:  fmt.Sprintf("do not match spec.selector, %s: add what it asks for", decode.Clip(selector.String())),
			Plain: "do not match spec.selector: add what it asks for"}, wrong)
	}
}

// checkJob is check for a Job.
func (w *Workload) checkJob() (idle bool) {
	j, c := w.job, w.c
	if p := w.Template.Spec.RestartPolicy; p != v1.RestartPolicyNever && p != v1.RestartPolicyOnFailure {
		c.refuse(field.Required(field.NewPath("spec.template.spec.restartPolicy"), "a Job's is Never or OnFailure"))
	}
	if limit := j.BackoffLimit; limit != nil && *limit < 0 {
		c.refuse(field.Invalid(field.NewPath("spec.backoffLimit"), *limit, "must be greater than or equal to 0"))
	}
	for _, name := range slices.Sorted(maps.Keys(j.ignored())) {
		c.note("spec."+name, "has no effect here")
	}
	idle = w.count("parallelism", j.Parallelism)
	idle = w.count("completions", j.Completions) || idle
	if j.Suspend != nil && *j.Suspend {
		c.warn("spec.suspend", "is true: no pod of it runs")
		return true
	}
	return idle
}

// PodName returns the name of the pod that an object gives, "" if it has none.
func PodName(n *yaml.Node) string {
	name := decode.Text(n, "metadata", "name")
	if name == "" || decode.Text(n, "kind") != "StatefulSet" {
		return name
	}
	ordinal, err := strconv.Atoi(decode.Find(n, "spec.ordinals.start").Value)
	if err != nil {
		ordinal = 0
	}
	return name + "-" + strconv.Itoa(ordinal)
}
