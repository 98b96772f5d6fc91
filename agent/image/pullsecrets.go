package image

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Secrets returns local Secrets by name; nil without an error if there is none of that name.
// Callers must not change them.
type Secrets interface {
	Secret(namespace, name string) (*v1.Secret, error)
}

// PullSecrets returns the pod's own credentials for registries. unusable is called for one that is
// missing or of no use; the image is pulled without it, as with the kubelet.
func PullSecrets(p *v1.Pod, from Secrets, unusable func(name string, err error)) []*v1.Secret {
	var found []*v1.Secret
	for _, ref := range p.Spec.ImagePullSecrets {
		if from == nil || ref.Name == "" {
			continue
		}
		s, err := from.Secret(p.Namespace, ref.Name)
		if s == nil && err == nil {
			err = fmt.Errorf("there is no secret %s/%s", p.Namespace, ref.Name)
		}
		if err == nil {
			err = CheckSecret(s)
		}
		if err != nil {
			unusable(ref.Name, err)
			continue
		}
		found = append(found, s)
	}
	return found
}
