package outlook

import (
	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
)

// Asked is the request: what manifests give, as the client has decoded it.
type Asked struct {
	Pods       []Version       `json:"pods,omitempty"`
	ConfigMaps []*v1.ConfigMap `json:"configMaps,omitempty"`
	Secrets    []*v1.Secret    `json:"secrets,omitempty"`
	Whole      bool            `json:"whole,omitempty"` // this is everything that the agent's folder would give
}

// Version is a manifests.Pod in a request.
type Version struct {
	Pod    *v1.Pod `json:"pod"`
	File   string  `json:"file,omitempty"`
	Digest string  `json:"digest"`
}

func (v Version) version() *manifests.Pod {
	return &manifests.Pod{Pod: v.Pod, File: v.File, Digest: v.Digest}
}

// About returns the request about these pods and objects.
func About(pods []*manifests.Pod, all []*manifests.Object, whole bool) *Asked {
	a := &Asked{Whole: whole}
	for _, p := range pods {
		a.Pods = append(a.Pods, Version{Pod: p.Pod, File: p.File, Digest: p.Digest})
	}
	for _, o := range all {
		if o.Secret != nil {
			a.Secrets = append(a.Secrets, o.Secret)
		} else {
			a.ConfigMaps = append(a.ConfigMaps, o.ConfigMap)
		}
	}
	return a
}

// objects returns the ConfigMaps and Secrets.
func (a *Asked) objects() (all []*manifests.Object) {
	for _, c := range a.ConfigMaps {
		all = append(all, manifests.NewObject(c, nil, ""))
	}
	for _, s := range a.Secrets {
		all = append(all, manifests.NewObject(nil, s, ""))
	}
	return all
}
