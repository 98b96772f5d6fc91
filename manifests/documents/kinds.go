package documents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"monopod/manifests/annotations"
	"monopod/manifests/decode"
	"monopod/manifests/validate"
	"monopod/manifests/workload"
)

// problem returns a problem at a field of the object.
func (f *fileDecoder) problem(o decode.Object, name string, m decode.Message) decode.Problem {
	return o.Problem(f.file, decode.Find(o.Node, name), decode.Join(o.Path, name), m)
}

// object decodes an object by its kind.
func (f *fileDecoder) object(o decode.Object) {
	if o.Node = decode.Follow(o.Node); o.Node.Kind != yaml.MappingNode {
		f.unreadable(f.problem(o, "", decode.Got("expected a Pod", o.Node)))
		return
	}
	kind, version := decode.Text(o.Node, "kind"), decode.Text(o.Node, "apiVersion")
	if kind == "" && version == "" && o.Kind != "" {
		kind, version = o.Kind, "v1"
	}
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	own, skipped := unserved[kind]
	switch id := version + " " + kind; {
	case kind == "":
		f.wrongKind(o, f.problem(o, "kind", decode.Fixed(`the kind is missing: write "kind: Pod"`)))
	case version == "":
		f.wrongKind(o, f.problem(o, "apiVersion", decode.Fixed(fmt.Sprintf(
			`the apiVersion is missing: write "apiVersion: %s"`, cmp.Or(workload.Version(kind), "v1")))))
	case id == "v1 Pod":
		f.pod(o)
	case id == "v1 PodList":
		f.list(o, "Pod")
	case id == "v1 List":
		f.list(o, "")
	case id == "v1 ConfigMapList":
		f.list(o, ConfigMap)
	case id == "v1 SecretList":
		f.list(o, Secret)
	case id == "v1 ConfigMap", id == "v1 Secret":
		f.config(o, kind)
	case id == "v1 PersistentVolumeClaim":
		f.claim(o)
	case version == workload.Version(kind):
		f.workload(o, kind)
	case skipped && group == own:
		f.skip(o, kind)
	case group == "batch" && kind == "CronJob":
		f.wrongKind(o, f.problem(o, "kind", decode.Fixed("CronJob cannot run here: there is no schedule; "+
			"write its Job, and have a timer of the machine run it with `monopod once`")))
	case workload.Version(kind) != "":
		f.wrongKind(o, f.problem(o, "apiVersion", decode.Fixed(fmt.Sprintf(
			`a %s is read as %[2]s only: write "apiVersion: %[2]s"`, kind, workload.Version(kind)))))
	default:
		at := "kind"
		if version != "v1" {
			at, kind = "apiVersion", decode.Clip(version)+" "+decode.Clip(kind)
		}
		const runs = " is not a static pod: what can run here is a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet or Job, also in a List"
		f.wrongKind(o, f.problem(o, at, decode.Message{Full: decode.Clip(kind) + runs,
			Plain: "this" + runs + "; a Secret has apiVersion: v1 and kind: Secret"}))
	}
}

// unserved are the kinds, with the group of their API, that helm and others print beside pods and
// that have no effect on a single machine.
var unserved = map[string]string{
	"Namespace": "", "Service": "", "ServiceAccount": "", "Endpoints": "", "PersistentVolume": "", "LimitRange": "",
	"ResourceQuota": "",
	"Role":          rbac, "ClusterRole": rbac, "RoleBinding": rbac, "ClusterRoleBinding": rbac,
	"NetworkPolicy": "networking.k8s.io", "Ingress": "networking.k8s.io", "IngressClass": "networking.k8s.io",
	"PodDisruptionBudget": "policy", "HorizontalPodAutoscaler": "autoscaling", "EndpointSlice": "discovery.k8s.io",
	"CustomResourceDefinition": "apiextensions.k8s.io", "PriorityClass": "scheduling.k8s.io", "StorageClass": "storage.k8s.io",
	"RuntimeClass": "node.k8s.io", "ValidatingWebhookConfiguration": webhooks, "MutatingWebhookConfiguration": webhooks,
}

const (
	rbac     = "rbac.authorization.k8s.io"
	webhooks = "admissionregistration.k8s.io"
)

// skip notes, once for each kind, that its objects have no effect.
func (f *fileDecoder) skip(o decode.Object, kind string) {
	f.note(o, "kind", kind+" is skipped: nothing here serves it")
}

// note adds a lasting warning about an object, in fixed words, once in a file.
func (f *fileDecoder) note(o decode.Object, field, words string) {
	p := f.problem(o, field, decode.Fixed(words))
	p.Warning, p.Note = true, true
	if !slices.ContainsFunc(f.Problems, func(q decode.Problem) bool { return q.Message == p.Message }) {
		f.Problems = append(f.Problems, p)
	}
}

// workload decodes an object from which a pod is made.
func (f *fileDecoder) workload(o decode.Object, kind string) {
	r := f.reader()
	w := workload.Read(r, o, kind)
	for _, name := range w.Claims() {
		f.give(w.Pod.Namespace, name)
	}
	f.take(origin{Object: o, at: w.At, idle: w.Idle, hook: isHelms(o)}, r, w.Pod)
}

// claim validates a PersistentVolumeClaim. The folder of a claim is created for the first pod that
// mounts it.
func (f *fileDecoder) claim(o decode.Object) {
	r, c := f.reader(), &v1.PersistentVolumeClaim{}
	r.Read(o, c)
	f.give(c.Namespace, c.Name)
	for _, e := range validate.Claim(c) {
		if !r.IsMisread(o, e.Field) {
			r.Report(o, decode.Find(o.Node, e.Field), decode.Join(o.Path, e.Field), decode.Invalid(e), false)
		}
	}
	reportMisplaced(r, o, false)
	f.Problems = append(f.Problems, r.Problems...)
}

// reportMisplaced warns of monopod's annotations on an object that is no pod. A list may have its own.
func reportMisplaced(r *decode.Reader, o decode.Object, isList bool) {
	words := decode.Fixed("has no effect here: write it into the metadata of a pod")
	if isList {
		words = decode.Fixed("has no effect on a list: write it into the metadata of its pods")
	}
	for _, key := range decode.Keys(o.Node, "metadata", "annotations") {
		_, misspelt := annotations.Misspelt(key.Value, annotations.InManifests)
		a, _ := annotations.Named(key.Value)
		isOfList := isList && a.On == annotations.OnLists
		if !isOfList && (misspelt || annotations.MeansMonopod(key.Value)) {
			r.Report(o, key, decode.Join(o.Path, "metadata.annotations["+key.Value+"]"), words, true)
		}
	}
}

// give records a claim that the file gives.
func (f *fileDecoder) give(namespace, name string) {
	f.claims[Key{Namespace: cmp.Or(namespace, metav1.NamespaceDefault), Name: name}] = true
}

// checkClaims refuses the pods that use a claim which neither their file nor another one gives: a
// kubelet would request it from an API server, and such a pod cannot run. A volume in podman's
// naming counts as a claim without a document, with a note.
func (f *fileDecoder) checkClaims() {
	for k := len(f.Pods) - 1; k >= 0; k-- {
		l := f.lacking(k)
		if len(l.Problems) > 0 {
			l.unclear = f.Unclear
			f.refuse(f.origins[k].Object, &l.Problems[0])
			f.Lacking = append(f.Lacking, l)
			f.Problems = append(f.Problems, l.Problems...)
			f.Pods, f.origins = slices.Delete(f.Pods, k, k+1), slices.Delete(f.origins, k, k+1)
		}
	}
}

// lacking returns the claims that a pod uses and no file gives. It adds notes for volumes in
// podman's naming.
func (f *fileDecoder) lacking(k int) Lacking {
	const lacks = ": add it as a document, for a directory that outlives the pod"
	const notes = ": as a volume of podman's it is a directory that outlives the pod all the same"
	l := Lacking{Found: f.Pods[k]}
	for i, v := range l.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		c := Key{Namespace: l.Pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}
		field := fmt.Sprintf("spec.volumes[%d].persistentVolumeClaim.claimName", i)
		switch {
		case f.hasClaim(c):
		case isPodmans(&v):
			f.noteClaim(c, f.claimProblem(k, field, c.Name, notes, true))
		default:
			l.Claims = append(l.Claims, c)
			l.Problems = append(l.Problems, f.claimProblem(k, field, c.Name, lacks, false)...)
		}
	}
	return l
}

// isPodmans reports whether a volume is named as podman kube generate does, which prints no claims
// for its volumes.
func isPodmans(v *v1.Volume) bool { return v.Name == v.PersistentVolumeClaim.ClaimName+"-pvc" }

// claimProblem returns the problem of a claim that no file gives, at a field of a pod.
func (f *fileDecoder) claimProblem(k int, field, name, effect string, warning bool) []decode.Problem {
	r := f.reader()
	f.origins[k].report(r, field, decode.Message{Full: "no file gives the PersistentVolumeClaim " + name + effect, Plain: "no file gives this PersistentVolumeClaim" + effect}, warning)
	return r.Problems
}

// noteClaim adds a note about a claim that no file gives, once for each claim.
func (f *fileDecoder) noteClaim(c Key, said []decode.Problem) {
	if slices.ContainsFunc(f.Unnamed, func(u Unnamed) bool { return u.Claim == c }) {
		return
	}
	for _, p := range said {
		p.Note = true
		f.Problems = append(f.Problems, p)
		f.Unnamed = append(f.Unnamed, Unnamed{Claim: c, Note: p})
	}
}

func (f *fileDecoder) hasClaim(c Key) bool { return f.claims[c] || f.options.Claims[c] }

// Claims returns the PersistentVolumeClaims that a file gives.
func Claims(file string, data []byte, o Options) map[Key]bool { return decoded(file, data, o).claims }

// Lacking is a pod that is refused only because its file lacks claims.
type Lacking struct {
	Found
	Claims   []Key
	Problems []decode.Problem
	unclear  bool // the file was unclear before
}

// Unnamed is a claim that pods of a file use and that exists although no document of the file gives
// it.
type Unnamed struct {
	Claim Key
	Note  decode.Problem
}

// Given returns the content with those Lacking pods whose claims other files give, and without the
// notes about given claims.
func (c Content) Given(claims map[Key]bool) Content {
	for _, l := range c.Lacking {
		if slices.ContainsFunc(l.Claims, func(k Key) bool { return !claims[k] }) {
			continue
		}
		c.Pods = append(slices.Clone(c.Pods), l.Found)
		c.Unclear = c.Unclear && l.unclear
		if k := slices.Index(c.Refused, l.Key()); k >= 0 {
			c.Refused = slices.Delete(slices.Clone(c.Refused), k, k+1)
		}
		c.Problems = slices.DeleteFunc(slices.Clone(c.Problems), func(p decode.Problem) bool { return slices.Contains(l.Problems, p) })
	}
	c.Problems = slices.DeleteFunc(slices.Clone(c.Problems), func(p decode.Problem) bool {
		return slices.ContainsFunc(c.Unnamed, func(u Unnamed) bool { return u.Note == p && claims[u.Claim] })
	})
	return c
}

// wrongKind refuses an object that is not a pod but may have been one before a typing error.
func (f *fileDecoder) wrongKind(o decode.Object, p decode.Problem) {
	f.refuse(o, &p)
	f.Problems = append(f.Problems, p)
}

// refuse records which pod is invalid, so that the Source keeps its last good version, and names
// the pod in the problems.
func (f *fileDecoder) refuse(o decode.Object, problems ...*decode.Problem) {
	pod := &v1.Pod{}
	pod.Name, pod.Namespace = workload.PodName(o.Node), decode.Text(o.Node, "metadata", "namespace")
	if pod.Name == "" || decode.ValidateName(pod.Name) != nil ||
		pod.Namespace != "" && validation.IsDNS1123Label(pod.Namespace) != nil {
		f.Unclear = true
		return
	}
	setName(pod, f.options)
	f.Refused = append(f.Refused, KeyOf(pod))
	for _, p := range problems {
		p.Pod = KeyOf(pod).String()
	}
}

// listHead is what a List has besides its items.
type listHead struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        listMeta `json:"metadata"`
}

// listMeta is what tools write into the metadata of lists. Annotations may be numbers, as monopod.serial.
type listMeta struct {
	metav1.ObjectMeta  `json:",inline"`
	Annotations        map[string]any `json:"annotations"`
	Continue           string         `json:"continue"`
	RemainingItemCount *int64         `json:"remainingItemCount"`
	ShardInfo          any            `json:"shardInfo"`
}

// listHead checks what a list has besides its items. A field that is wrong may have been meant to hold
// some.
func (f *fileDecoder) listHead(o decode.Object) {
	r := f.reader()
	r.Read(o.Without("items"), &listHead{})
	reportMisplaced(r, o, true)
	f.Problems = append(f.Problems, r.Problems...)
	f.Unclear = f.Unclear || slices.ContainsFunc(r.Problems, func(p decode.Problem) bool { return !p.Warning })
}

// list decodes the items of a PodList or List.
func (f *fileDecoder) list(o decode.Object, kind string) {
	f.listHead(o)
	_, items := decode.Lookup(o.Node, "items")
	if items == nil {
		f.unreadable(f.problem(o, "items", decode.Fixed("a list needs items")))
		return
	}
	items = decode.Follow(items)
	if decode.IsNull(items) {
		return
	}
	if items.Kind != yaml.SequenceNode {
		f.unreadable(f.problem(o, "items", decode.Got("expected a list", items)))
		return
	}
	for _, inner := range o.Items(items, kind) {
		if inner.Depth > 5 {
			f.unreadable(f.problem(o, "items", decode.Fixed("too many lists in lists")))
			return
		}
		f.object(inner)
		if f.tooManyProblems() {
			return
		}
	}
}
