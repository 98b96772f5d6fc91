package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	v1 "k8s.io/api/core/v1"
)

// file is one file of a volume that shows the pod or objects.
type file struct {
	data []byte
	mode fs.FileMode
}

// payload is the content of a volume: files by path in it.
type payload map[string]file

// files creates or updates a volume that shows the pod or objects. It changes nothing if a part of
// the content is not available.
func (s *setup) files(ctx context.Context, v *v1.Volume) (Mount, error) {
	plugin, want, err := s.contents(v)
	if err == nil {
		err = want.check()
	}
	if err != nil {
		return Mount{}, err
	}
	medium := v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}
	if v.ConfigMap != nil {
		medium.Medium = v1.StorageMediumDefault
	}
	p, err := s.place(plugin, v.Name, "wrapped_"+v.Name, medium)
	if err != nil {
		return Mount{}, err
	}
	defer p.Close()
	if err := s.publish(ctx, p, want); err != nil {
		return Mount{}, err
	}
	return Mount{HostPath: p.path, ReadOnly: true, Managed: true}, p.ready()
}

// contents returns the content of a volume.
func (s *setup) contents(v *v1.Volume) (plugin string, p payload, err error) {
	switch {
	case v.ConfigMap != nil:
		c := v.ConfigMap
		p, err = s.configMap(c.Name, c.Items, c.DefaultMode, c.Optional)
		return configMapPlugin, p, err
	case v.Secret != nil:
		c := v.Secret
		p, err = s.secret(c.SecretName, c.Items, c.DefaultMode, c.Optional)
		return secretPlugin, p, err
	case v.DownwardAPI != nil:
		p, err = s.downward(v.DownwardAPI.Items, v.DownwardAPI.DefaultMode)
		return downwardPlugin, p, err
	default:
		p, err = s.projected(v)
		return projectedPlugin, p, err
	}
}

// projected merges the sources in order; later ones win.
func (s *setup) projected(v *v1.Volume) (payload, error) {
	out := payload{}
	for i := range v.Projected.Sources {
		p, err := s.source(v, &v.Projected.Sources[i])
		if err != nil {
			return nil, err
		}
		maps.Copy(out, p)
	}
	return out, nil
}

func (s *setup) source(v *v1.Volume, from *v1.VolumeProjection) (payload, error) {
	mode := v.Projected.DefaultMode
	switch {
	case from.DownwardAPI != nil:
		return s.downward(from.DownwardAPI.Items, mode)
	case from.ConfigMap != nil:
		return s.configMap(from.ConfigMap.Name, from.ConfigMap.Items, mode, from.ConfigMap.Optional)
	case from.Secret != nil:
		return s.secret(from.Secret.Name, from.Secret.Items, mode, from.Secret.Optional)
	default:
		return nil, fmt.Errorf("unknown source for projected volume %q", v.Name)
	}
}

// downward returns the files of a downwardAPI volume. It joins the errors of all files.
func (s *setup) downward(items []v1.DownwardAPIVolumeFile, mode *int32) (payload, error) {
	out := payload{}
	var errs []error
	for _, i := range items {
		text, err := s.text(&i)
		if err != nil {
			errs = append(errs, fmt.Errorf("downwardAPI file %s: %w", i.Path, err))
		}
		out[i.Path] = file{text, fileMode(i.Mode, mode)}
	}
	return out, errors.Join(errs...)
}

// text returns the content of a downwardAPI file.
func (s *setup) text(i *v1.DownwardAPIVolumeFile) ([]byte, error) {
	switch {
	case i.FieldRef != nil && s.in.Field != nil:
		if text, known := s.texts[i.FieldRef.FieldPath]; known {
			return text, nil
		}
		text, err := s.in.Field(i.FieldRef)
		if err != nil {
			return nil, err
		}
		s.texts[i.FieldRef.FieldPath] = []byte(text)
		return s.texts[i.FieldRef.FieldPath], nil
	case i.ResourceFieldRef != nil && s.in.Resource != nil:
		text, err := s.in.Resource(i.ResourceFieldRef)
		return []byte(text), err
	}
	return nil, errors.New("it refers to nothing")
}

// configMap returns the files of a ConfigMap.
func (s *setup) configMap(name string, items []v1.KeyToPath, mode *int32, optional *bool) (payload, error) {
	var m *v1.ConfigMap
	var err error
	if s.in.Objects != nil {
		if m, err = s.in.Objects.ConfigMap(s.pod.Namespace, name); err != nil {
			return nil, fmt.Errorf("configmap %q: %w", name, err)
		}
	}
	may := optional != nil && *optional
	if m == nil && !may {
		return nil, fmt.Errorf("configmap %q not found", name)
	}
	return pick(s.keysOf(m), items, mode, may, "configmap references non-existent config key: ")
}

// keysOf returns the keys of a ConfigMap of the pod's namespace, nil if there is none.
func (s *setup) keysOf(m *v1.ConfigMap) map[string][]byte {
	if m == nil {
		return nil
	}
	if keys, known := s.keys[m.Name]; known {
		return keys
	}
	keys := maps.Clone(m.BinaryData)
	if keys == nil {
		keys = map[string][]byte{}
	}
	for k, text := range m.Data {
		keys[k] = []byte(text)
	}
	s.keys[m.Name] = keys
	return keys
}

// secret returns the files of a Secret.
func (s *setup) secret(name string, items []v1.KeyToPath, mode *int32, optional *bool) (payload, error) {
	var m *v1.Secret
	var err error
	if s.in.Objects != nil {
		if m, err = s.in.Objects.Secret(s.pod.Namespace, name); err != nil {
			return nil, fmt.Errorf("secret %q: %w", name, err)
		}
	}
	may := optional != nil && *optional
	if m == nil && !may {
		return nil, fmt.Errorf("secret %q not found", name)
	}
	var keys map[string][]byte
	if m != nil {
		keys = m.Data
	}
	return pick(keys, items, mode, may, "references non-existent secret key: ")
}

// pick returns all keys as files, or only the items if there are any.
func pick(keys map[string][]byte, items []v1.KeyToPath, mode *int32, optional bool, missing string) (payload, error) {
	out := payload{}
	if len(items) == 0 {
		for k, data := range keys {
			out[k] = file{data, fileMode(nil, mode)}
		}
	}
	for _, i := range items {
		data, ok := keys[i.Key]
		switch {
		case ok:
			out[i.Path] = file{data, fileMode(i.Mode, mode)}
		case !optional:
			return nil, errors.New(missing + i.Key)
		}
	}
	return out, nil
}

// fileMode returns the mode of a file: its own, else its volume's, else 0644.
func fileMode(own, volume *int32) fs.FileMode {
	for _, m := range []*int32{own, volume} {
		if m != nil {
			return fs.FileMode(*m) & fs.ModePerm
		}
	}
	return 0o644
}
