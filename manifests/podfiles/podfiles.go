// Package podfiles computes the size of the files that are made for a pod: those of its
// downwardAPI, configMap, secret and projected volumes. A small manifest can cause large ones, as
// it may show one value under many names.
package podfiles

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Most is the size limit of all these files of a pod together, in bytes.
const Most = 64 << 20

// block is the least size of a file or folder in bytes: a page of memory, or a block of the disk.
const block = 4 << 10

// Objects returns ConfigMaps and Secrets by name; nil without an error if there is none. The
// results must not be changed.
type Objects interface {
	ConfigMap(namespace, name string) (*v1.ConfigMap, error)
	Secret(namespace, name string) (*v1.Secret, error)
}

// TooLarge is the error of a pod whose files exceed Most.
type TooLarge struct {
	Field string // of the largest volume, such as spec.volumes[0]
	Text  string
	Plain string // the text without the volume's name
}

// Check returns nil if the size of the pod's files is at most Most. Each file of a missing object,
// or of any object if objects is nil, counts as a small one.
func Check(pod *v1.Pod, objects Objects) *TooLarge {
	c := counter{pod: pod, objects: objects, fields: map[string]int64{}, values: map[string]map[string]int64{}}
	all, most, at := int64(0), int64(0), 0
	for k := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[k]
		if !isMounted(pod, v.Name) {
			continue
		}
		n := c.volume(v)
		all += n
		if n > most {
			most, at = n, k
		}
	}
	if all <= Most {
		return nil
	}
	text := func(volume string) string {
		return fmt.Sprintf("the files of the pod's volumes would take %d MiB, %d MiB of them in %s, and %d MiB are made for a pod at most: show fewer keys, or each under fewer names",
			mebibytes(all), mebibytes(most), volume, Most>>20)
	}
	return &TooLarge{fmt.Sprintf("spec.volumes[%d]", at), text(fmt.Sprintf("volume %q", pod.Spec.Volumes[at].Name)), text("this volume")}
}

func mebibytes(n int64) int64 { return (n + 1<<20 - 1) >> 20 }

func isMounted(pod *v1.Pod, volume string) bool {
	mounts := func(c v1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == volume })
	}
	return slices.ContainsFunc(pod.Spec.InitContainers, mounts) || slices.ContainsFunc(pod.Spec.Containers, mounts)
}

// counter adds up the files of one pod; it measures each value once.
type counter struct {
	pod     *v1.Pod
	objects Objects
	fields  map[string]int64            // sizes, by the path of the field
	values  map[string]map[string]int64 // sizes of an object's values, by kind and name, then key

	paths []string // of the volume that is being counted
	bytes int64    // of its files
}

// add counts one file.
func (c *counter) add(path string, size int64) {
	c.paths = append(c.paths, path)
	c.bytes += max(block, (size+block-1)/block*block)
}

// volume returns the size of a volume's files.
func (c *counter) volume(v *v1.Volume) int64 {
	c.paths, c.bytes = nil, 0
	switch {
	case v.ConfigMap != nil:
		c.object("configmap", v.ConfigMap.Name, v.ConfigMap.Items)
	case v.Secret != nil:
		c.object("secret", v.Secret.SecretName, v.Secret.Items)
	case v.DownwardAPI != nil:
		c.downward(v.DownwardAPI.Items)
	case v.Projected != nil:
		for k := range v.Projected.Sources {
			c.projection(&v.Projected.Sources[k])
		}
	}
	return c.bytes + block*c.folders()
}

func (c *counter) projection(from *v1.VolumeProjection) {
	switch {
	case from.ConfigMap != nil:
		c.object("configmap", from.ConfigMap.Name, from.ConfigMap.Items)
	case from.Secret != nil:
		c.object("secret", from.Secret.Name, from.Secret.Items)
	case from.DownwardAPI != nil:
		c.downward(from.DownwardAPI.Items)
	}
}

// folders returns the number of folders that hold the files.
func (c *counter) folders() (n int64) {
	slices.Sort(c.paths)
	before := ""
	for _, path := range c.paths {
		same := 0
		for same < len(path) && same < len(before) && path[same] == before[same] {
			same++
		}
		n += int64(strings.Count(path[same:], "/"))
		before = path
	}
	return n
}

// downward counts the files of a downwardAPI volume.
func (c *counter) downward(items []v1.DownwardAPIVolumeFile) {
	for k := range items {
		size := int64(0)
		if f := items[k].FieldRef; f != nil {
			size = c.field(f.FieldPath)
		}
		c.add(items[k].Path, size)
	}
}

// field returns the length of a field's text, where that can be long.
func (c *counter) field(path string) int64 {
	size, known := c.fields[path]
	if known {
		return size
	}
	switch of, key, one := strings.Cut(strings.TrimSuffix(path, "']"), "['"); {
	case path == "metadata.labels":
		size = lines(c.pod.Labels)
	case path == "metadata.annotations":
		size = lines(c.pod.Annotations)
	case one && of == "metadata.annotations":
		size = int64(len(c.pod.Annotations[key]))
	}
	c.fields[path] = size
	return size
}

// lines returns the length of a map shown as lines: key="value", in Go's quotes.
func lines(m map[string]string) (n int64) {
	for key, value := range m {
		n += int64(len(key) + len("=\n") + len(strconv.Quote(value)))
	}
	return n
}

// object counts the files of an object: its items, or, without any, all keys.
func (c *counter) object(kind, name string, items []v1.KeyToPath) {
	sizes := c.sizes(kind, name)
	for _, i := range items {
		c.add(i.Path, sizes[i.Key])
	}
	if len(items) > 0 {
		return
	}
	for key, size := range sizes {
		c.add(key, size)
	}
}

// sizes returns the lengths of an object's values.
func (c *counter) sizes(kind, name string) map[string]int64 {
	id := kind + "/" + name
	out, known := c.values[id]
	if known || c.objects == nil {
		return out
	}
	out = map[string]int64{}
	if kind == "secret" {
		if s, err := c.objects.Secret(c.pod.Namespace, name); err == nil && s != nil {
			count(out, s.Data)
		}
	} else if m, err := c.objects.ConfigMap(c.pod.Namespace, name); err == nil && m != nil {
		count(out, m.Data)
		count(out, m.BinaryData)
	}
	c.values[id] = out
	return out
}

func count[V string | []byte](sizes map[string]int64, data map[string]V) {
	for key, value := range data {
		sizes[key] = int64(len(value))
	}
}
