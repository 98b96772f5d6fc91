package podfiles

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// one has one object of each kind, whose name is in all volumes.
type one struct {
	m *v1.ConfigMap
	s *v1.Secret
}

func (o one) ConfigMap(_, name string) (*v1.ConfigMap, error) { return o.m, nil }
func (o one) Secret(_, name string) (*v1.Secret, error)       { return o.s, nil }

// items are n files of one key.
func items(n int, path string) (all []v1.KeyToPath) {
	for k := range n {
		all = append(all, v1.KeyToPath{Key: "k", Path: fmt.Sprintf(path, k)})
	}
	return all
}

func fields(n int, path string) (all []v1.DownwardAPIVolumeFile) {
	for k := range n {
		all = append(all, v1.DownwardAPIVolumeFile{Path: fmt.Sprint(k), FieldRef: &v1.ObjectFieldSelector{FieldPath: path}})
	}
	return all
}

func configMap(items []v1.KeyToPath) v1.VolumeSource {
	return v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "m"}, Items: items}}
}

func secret(items []v1.KeyToPath) v1.VolumeSource {
	return v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s", Items: items}}
}

func downward(items []v1.DownwardAPIVolumeFile) v1.VolumeSource {
	return v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: items}}
}

func TestTheFilesOfAPodAreCounted(t *testing.T) {
	mib := strings.Repeat("x", 1<<20)
	large := one{&v1.ConfigMap{Data: map[string]string{"k": mib}}, &v1.Secret{Data: map[string][]byte{"k": []byte(mib)}}}
	small := one{&v1.ConfigMap{Data: map[string]string{"k": "v"}}, &v1.Secret{Data: map[string][]byte{"k": []byte("v")}}}
	for _, row := range []struct {
		name    string
		objects Objects
		volumes []v1.VolumeSource
		unused  bool // no container mounts the last volume
		want    string
	}{
		{"no volumes", large, nil, false, ""},
		{"64 times 1 MiB", large, []v1.VolumeSource{configMap(items(64, "%d"))}, false, ""},
		{"65 times 1 MiB", large, []v1.VolumeSource{configMap(items(65, "%d"))}, false, `spec.volumes[0]: the files of the pod's volumes would take 65 MiB, 65 MiB of them in volume "0", and 64 MiB are made for a pod at most`},
		{"in volumes of all kinds", large, []v1.VolumeSource{configMap(nil), secret(items(40, "%d")), downward(fields(4, "metadata.annotations['a']")),
			{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "s"}, Items: items(24, "%d")}}}}}},
			false, `spec.volumes[1]: the files of the pod's volumes would take 66 MiB, 40 MiB of them in volume "1"`},
		{"that is not mounted", large, []v1.VolumeSource{configMap(nil), secret(items(100, "%d"))}, true, ""},
		{"of objects that are not there", one{}, []v1.VolumeSource{configMap(items(100, "%d"))}, false, ""},
		{"of objects that are not known", nil, []v1.VolumeSource{configMap(items(100, "%d"))}, false, ""},
		{"each small file takes a block", small, []v1.VolumeSource{configMap(items(17_000, "%d"))}, false, "would take 67 MiB"},
		{"and each folder", nil, []v1.VolumeSource{configMap(items(9000, "%d/f"))}, false, "would take 71 MiB"},
		{"which files share", nil, []v1.VolumeSource{configMap(items(9000, "a/b/c/d/%d"))}, false, ""},
		{"one annotation", nil, []v1.VolumeSource{downward(fields(250, "metadata.annotations['a']"))}, false, ""},
		{"one annotation under many names", nil, []v1.VolumeSource{downward(fields(300, "metadata.annotations['a']"))}, false, "would take 75 MiB"},
		{"all annotations, in quotes", nil, []v1.VolumeSource{downward(fields(70, "metadata.annotations"))}, false, "would take 70 MiB"},
		{"what is short", nil, []v1.VolumeSource{downward(fields(4000, "metadata.name"))}, false, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := &v1.Pod{}
			p.Annotations = map[string]string{"a": strings.Repeat("\x01", 255<<10)}
			p.Spec.Containers = []v1.Container{{}}
			for k, source := range row.volumes {
				name := fmt.Sprint(k)
				p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
				if !row.unused || k < len(row.volumes)-1 {
					p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: name})
				}
			}
			text := ""
			if large := Check(p, row.objects); large != nil {
				text = large.Field + ": " + large.Text
			}
			if (text == "") != (row.want == "") || !strings.Contains(text, row.want) {
				t.Errorf("%q", text)
			}
		})
	}
}
