package handover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/podspec"
	"monopod/agent/volume"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// Exported is an accepted version as a manifest for a kubelet.
type Exported struct {
	Pod     *v1.Pod            // the manifest, with its uid
	Text    []byte             // the same as YAML; nil: YAML cannot hold it
	File    string             // its name
	Hash    poduid.ContentHash // of the accepted version
	Refused []string           // why a kubelet refuses it, or does not run it as monopod does; none: it takes it
}

// Exporter makes manifests of accepted versions.
type Exporter struct {
	Root string // the agent's dir
	// Inline has variables of ConfigMaps and Secrets written out, and claims mounted by the path of
	// their folder.
	Inline  bool
	Objects volume.Objects
}

// Export returns the manifest of an accepted version. The pod is not changed.
func (x *Exporter) Export(accepted *v1.Pod) Exported {
	p := accepted.DeepCopy()
	e := Exported{Pod: p, File: p.Namespace + "_" + p.Name + ".yaml", Hash: poduid.HashOf(accepted)}
	suffix := "-" + strings.ToLower(p.Spec.NodeName)
	if !strings.HasSuffix(p.Name, suffix) {
		e.Refused = append(e.Refused, fmt.Sprintf("its name does not end in %s, as all of a kubelet do: podNameSuffix is false", suffix))
	}
	p.Name = strings.TrimSuffix(p.Name, suffix)
	e.File = p.Namespace + "_" + p.Name + ".yaml"
	if x.Inline {
		e.Refused = append(e.Refused, x.inline(accepted, p)...)
	}
	e.Refused = append(e.Refused, refused(p)...)
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	p.Spec.NodeName, p.Status = "", v1.PodStatus{}
	for _, key := range []string{poduid.AnnotationHash, manifests.AnnotationSource, manifests.AnnotationSeen} {
		delete(p.Annotations, key)
	}
	isHeld := false
	if e.Text, isHeld = encode(p); !isHeld {
		e.Refused = append(e.Refused, unheld(p)...)
	}
	return e
}

// encode returns the YAML of a value, and whether a reader of it has the same value: YAML has no
// control characters, and changes some ends of lines.
func encode[T any](value *T) (text []byte, isHeld bool) {
	text, err := yaml.Marshal(value)
	var read T
	if err != nil || yaml.Unmarshal(text, &read) != nil {
		return nil, false
	}
	before, err := json.Marshal(value)
	after, failed := json.Marshal(&read)
	if err != nil || failed != nil || !bytes.Equal(before, after) {
		return nil, false
	}
	return text, true
}

// unheld returns what YAML cannot hold of a pod, without values, which may be secret.
func unheld(p *v1.Pod) (all []string) {
	for _, c := range podspec.AllContainers(p) {
		for _, v := range c.Env {
			if _, isHeld := encode(&v); !isHeld {
				all = append(all, fmt.Sprintf("container %s: variable %s has a character that YAML cannot hold: mount a file with its value by hostPath instead", c.Name, v.Name))
			}
		}
	}
	if len(all) == 0 {
		all = append(all, "its manifest has a character that YAML cannot hold: leave that out")
	}
	return all
}

// inline writes out in p what it refers to, and returns what cannot be. accepted is the same pod
// with its identity.
func (x *Exporter) inline(accepted, p *v1.Pod) (refused []string) {
	in := podspec.Input{Objects: x.Objects}
	for _, c := range podspec.AllContainers(p) {
		env, err := podspec.Inline(accepted, c, in)
		if err != nil {
			refused = append(refused, fmt.Sprintf("container %s: %v", c.Name, err))
			continue
		}
		c.Env, c.EnvFrom = env, nil
	}
	for k := range p.Spec.Volumes {
		if why := x.mountClaim(p, &p.Spec.Volumes[k]); why != "" {
			refused = append(refused, why)
		}
	}
	return refused
}

// mountClaim mounts the folder of a claim by its path. It returns why it cannot; "": it did.
func (x *Exporter) mountClaim(p *v1.Pod, v *v1.Volume) string {
	claim := v.PersistentVolumeClaim
	if claim == nil {
		return ""
	}
	dir := volume.ClaimDir(x.Root, manifests.Key{Namespace: p.Namespace, Name: claim.ClaimName})
	if info, err := os.Stat(dir); err != nil || !info.IsDir() { // not DirectoryOrCreate: its disk may not be mounted
		return fmt.Sprintf("volume %s: %s of the claim %s is no folder: mount its disk, or mkdir it if the claim has no data", v.Name, dir, claim.ClaimName)
	}
	isDir := v1.HostPathDirectory
	v.VolumeSource = v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: dir, Type: &isDir}}
	for _, c := range podspec.AllContainers(p) {
		for m := range c.VolumeMounts {
			if c.VolumeMounts[m].Name == v.Name && claim.ReadOnly {
				c.VolumeMounts[m].ReadOnly = true
			}
		}
	}
	return ""
}

// refused returns why a kubelet refuses a static pod: it may not refer to what an API server has.
func refused(p *v1.Pod) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if p.Spec.ServiceAccountName != "" {
		add("serviceAccountName: a static pod has no service account: leave it out")
	}
	if len(p.Spec.ImagePullSecrets) > 0 {
		add("imagePullSecrets: a static pod has none: give the kubelet the credentials in config.json of its root dir, and leave them out")
	}
	if p.Spec.RuntimeClassName != nil {
		add("runtimeClassName: a kubelet without an API server does not survive it: leave it out")
	}
	for _, c := range podspec.AllContainers(p) {
		for _, name := range objectVariables(c) {
			add("container %s: %s is of a ConfigMap or Secret: write it out with --inline", c.Name, name)
		}
	}
	for k := range p.Spec.Volumes {
		if why := refusedVolume(&p.Spec.Volumes[k]); why != "" {
			add("volume %s: %s", p.Spec.Volumes[k].Name, why)
		}
	}
	return all
}

// objectVariables returns the variables of objects, in words.
func objectVariables(c *v1.Container) (names []string) {
	if len(c.EnvFrom) > 0 {
		names = append(names, "envFrom")
	}
	for _, v := range c.Env {
		if from := v.ValueFrom; from != nil && (from.ConfigMapKeyRef != nil || from.SecretKeyRef != nil) {
			names = append(names, "variable "+v.Name)
		}
	}
	return names
}

const ofAServer = "a static pod has none: put its files into a folder, and mount that by hostPath"

func refusedVolume(v *v1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return "a static pod has no claim: mount its folder by hostPath, as --inline does"
	case v.ConfigMap != nil:
		return "it is of a ConfigMap: " + ofAServer
	case v.Secret != nil:
		return "it is of a Secret: " + ofAServer
	case v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, isOfServer):
		return "it has a ConfigMap or Secret: " + ofAServer
	}
	return ""
}

func isOfServer(s v1.VolumeProjection) bool { return s.DownwardAPI == nil }
