package documents

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/manifests/annotations"
	"monopod/manifests/defaults"
	"monopod/manifests/poduid"
)

// Annotations that the kubelet sets on static pods.
const (
	AnnotationHash   = poduid.AnnotationHash
	AnnotationSource = "kubernetes.io/config.source"
	AnnotationSeen   = "kubernetes.io/config.seen"
	annotationMirror = "kubernetes.io/config.mirror"

	seenLayout = "2006-01-02T15:04:05.000000000Z07:00"
)

// accept sets the defaults and the identity of a decoded pod. It takes ownership of pod.
func accept(pod *v1.Pod, file string, o Options) *Pod {
	tidy(pod)
	delete(pod.Annotations, annotations.TagImages) // of a copy of a running pod
	defaults.Pod(pod)
	if pod.UID == "" {
		pod.UID = uidOf(pod, file, o)
	}
	identify(pod, o)
	return &Pod{Pod: pod, File: file, Digest: DigestOf(pod)}
}

// uidOf computes the uid of a pod from the same inputs as the kubelet.
func uidOf(pod *v1.Pod, file string, o Options) types.UID {
	if o.URL != "" {
		return types.UID(digest(canonical(pod), "url:"+o.URL))
	}
	return types.UID(digest(canonical(pod), "host:"+o.NodeName, "file:"+file))
}

// Restored sets the defaults of this build in an accepted pod that was stored, by this build or
// another, and returns the digest of its manifest. A stored digest is of no use: another build
// computes a different one for the same manifest.
func Restored(accepted *v1.Pod) string {
	defaults.Pod(accepted)
	return DigestOf(accepted)
}

// DigestOf returns the digest of an accepted pod's manifest without the parts of its identity that
// follow from the node and the file.
func DigestOf(accepted *v1.Pod) string {
	p := accepted.DeepCopy()
	tidy(p)
	annotations.UnsetJobRetries(p)
	p.Name = strings.TrimSuffix(p.Name, "-"+strings.ToLower(p.Spec.NodeName))
	if p.Namespace == metav1.NamespaceDefault {
		p.Namespace = ""
	}
	p.UID, p.Spec.NodeName = "", ""
	p.Spec.Tolerations = slices.DeleteFunc(p.Spec.Tolerations, toleratesNoExecute)
	return digest(canonical(p))
}

// tidy removes what a manifest that was copied from a running pod contains, and what only an API
// server may set.
func tidy(pod *v1.Pod) {
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Status = v1.PodStatus{}
	pod.ManagedFields = nil
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	for _, a := range []string{AnnotationHash, AnnotationSource, AnnotationSeen, annotationMirror} {
		delete(pod.Annotations, a)
	}
	for a := range pod.Annotations {
		if strings.HasPrefix(a, "pod.alpha.kubernetes.io/init-container") || strings.HasPrefix(a, "pod.beta.kubernetes.io/init-container") {
			delete(pod.Annotations, a)
		}
	}
	if len(pod.Annotations) == 0 {
		pod.Annotations = nil
	}
}

// canonical returns the pod as JSON: equal pods give equal bytes.
func canonical(pod *v1.Pod) []byte {
	text, err := json.Marshal(pod)
	if err != nil { // impossible: every Pod can be marshalled
		return nil
	}
	return text
}

// digest returns the hex FNV-128a of its parts: 32 digits.
func digest(text []byte, more ...string) string {
	h := fnv.New128a()
	h.Write(text)
	for _, s := range more {
		io.WriteString(h, s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// identify sets what the kubelet sets on every static pod. The uid must be set already.
func identify(pod *v1.Pod, o Options) {
	setName(pod, o)
	pod.Spec.NodeName = o.NodeName
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[AnnotationHash] = string(pod.UID)
	pod.Annotations[AnnotationSource] = "file"
	if o.URL != "" {
		pod.Annotations[AnnotationSource] = "http"
	}
	pod.Annotations[AnnotationSeen] = time.Now().Format(seenLayout)
	if o.URL == "" { // as the kubelet: not on pods of a URL
		tolerateNoExecute(&pod.Spec)
	}
	pod.Status.Phase = v1.PodPending
}

// setName sets a pod's default namespace and appends the node suffix to its name.
func setName(pod *v1.Pod, o Options) {
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	if o.NameSuffix && o.NodeName != "" && pod.Name != "" {
		pod.Name += "-" + strings.ToLower(o.NodeName)
	}
}

// tolerateNoExecute adds the toleration that keeps static pods on a node with any
// taint.
func tolerateNoExecute(spec *v1.PodSpec) {
	forced := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	if i := slices.IndexFunc(spec.Tolerations, toleratesNoExecute); i >= 0 {
		spec.Tolerations[i] = forced
		return
	}
	spec.Tolerations = append(spec.Tolerations, forced)
}

func toleratesNoExecute(t v1.Toleration) bool {
	return t.Key == "" && t.Operator == v1.TolerationOpExists && t.Effect == v1.TaintEffectNoExecute
}
