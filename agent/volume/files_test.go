package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// objects are ConfigMaps and Secrets of the namespace "default".
type objects struct {
	configMaps map[string]*v1.ConfigMap
	secrets    map[string]*v1.Secret
}

func (o objects) ConfigMap(namespace, name string) (*v1.ConfigMap, error) {
	if name == "broken" {
		return nil, errors.New("it cannot be read")
	}
	if namespace != "default" {
		return nil, nil
	}
	return o.configMaps[name], nil
}

func (o objects) Secret(namespace, name string) (*v1.Secret, error) {
	if namespace != "default" {
		return nil, nil
	}
	return o.secrets[name], nil
}

func shop() objects {
	return objects{
		map[string]*v1.ConfigMap{"m": {Data: map[string]string{"a": "A", "b": "B"}, BinaryData: map[string][]byte{"bin": {0, 255}}}},
		map[string]*v1.Secret{"s": {Data: map[string][]byte{"key": []byte("hidden"), "b": []byte("secret b")}}},
	}
}

// input says "<path>!" for each field, and "<container>/<resource>" for resources.
func input() Input {
	return Input{
		Memory:   1 << 20,
		Field:    func(f *v1.ObjectFieldSelector) (string, error) { return f.FieldPath + "!", nil },
		Resource: func(r *v1.ResourceFieldSelector) (string, error) { return r.ContainerName + "/" + r.Resource, nil },
		Objects:  shop(),
	}
}

func field(path, of string) v1.DownwardAPIVolumeFile {
	return v1.DownwardAPIVolumeFile{Path: path, FieldRef: &v1.ObjectFieldSelector{FieldPath: of}}
}

func downward(items ...v1.DownwardAPIVolumeFile) v1.Volume {
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: items}}}
}

func configMap(name string, change ...func(*v1.ConfigMapVolumeSource)) v1.Volume {
	s := &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}
	for _, f := range change {
		f(s)
	}
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{ConfigMap: s}}
}

func secret(name string, change ...func(*v1.SecretVolumeSource)) v1.Volume {
	s := &v1.SecretVolumeSource{SecretName: name}
	for _, f := range change {
		f(s)
	}
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Secret: s}}
}

func projected(sources ...v1.VolumeProjection) v1.Volume {
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources, DefaultMode: new(int32(0o440))}}}
}

// listing returns what a container sees: "<mode> <content>" by path.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		if strings.HasPrefix(name, "..") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		real, err := filepath.EvalSymlinks(path)
		must(t, err)
		return filepath.WalkDir(real, func(at string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(at)
			below, _ := filepath.Rel(real, at)
			out[filepath.Join(name, below)] = fmt.Sprintf("%04o %s", mode(t, at).Perm(), b)
			return err
		})
	}))
	return out
}

func TestFileVolumes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	items := []v1.KeyToPath{{Key: "a", Path: "x/y/a", Mode: new(int32(0o600))}}
	for _, c := range []struct {
		name, plugin string
		v            v1.Volume
		want         map[string]string
	}{
		{"configMap", "configmap", configMap("m"), map[string]string{"a": "0644 A", "b": "0644 B", "bin": "0644 \x00\xff"}},
		{"configMap items", "configmap", configMap("m", func(s *v1.ConfigMapVolumeSource) { s.Items = items }), map[string]string{"x/y/a": "0600 A"}},
		{"secret", "secret", secret("s", func(s *v1.SecretVolumeSource) { s.DefaultMode = new(int32(0o400)) }), map[string]string{"key": "0400 hidden", "b": "0400 secret b"}},
		{"optional and missing", "configmap", configMap("none", func(s *v1.ConfigMapVolumeSource) { s.Optional = new(true) }), map[string]string{}},
		{"optional secret, missing", "secret", secret("none", func(s *v1.SecretVolumeSource) { s.Optional = new(true) }), map[string]string{}},
		{"optional and a missing key", "secret", secret("s", func(s *v1.SecretVolumeSource) {
			s.Optional, s.Items = new(true), []v1.KeyToPath{{Key: "none", Path: "n"}, {Key: "key", Path: "k"}}
		}), map[string]string{"k": "0644 hidden"}},
		{"downwardAPI", "downward-api", downward(field("sub/name", "metadata.name"), field("./labels", "metadata.labels"),
			v1.DownwardAPIVolumeFile{Path: "cpu", Mode: new(int32(0)), ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: "c", Resource: "limits.cpu"}}),
			map[string]string{"sub/name": "0644 metadata.name!", "labels": "0644 metadata.labels!", "cpu": "0000 c/limits.cpu"}},
		{"projected, the later wins", "projected", projected(
			v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "m"}}},
			v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "s"}}},
			v1.VolumeProjection{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{field("n", "metadata.name")}}}),
			map[string]string{"a": "0440 A", "b": "0440 secret b", "bin": "0440 \x00\xff", "key": "0440 hidden", "n": "0440 metadata.name!"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := testRoot(t)
			m, err := SetUp(t.Context(), root, testPod(c.v), input())
			must(t, err)
			want := Mount{HostPath: filepath.Join(root, "pods/u1/volumes/kubernetes.io~"+c.plugin+"/v"), ReadOnly: true, Managed: true}
			if m["v"] != want {
				t.Errorf("got %+v", m["v"])
			}
			if got := listing(t, want.HostPath); !maps.Equal(got, c.want) {
				t.Errorf("got %q", got)
			}
			kept(t, filepath.Join(root, "pods/u1/plugins/kubernetes.io~empty-dir/wrapped_v/ready"))
			var s unix.Statfs_t
			must(t, unix.Statfs(want.HostPath, &s))
			sticky := fs.ModeSticky
			if c.plugin == "configmap" {
				sticky = 0
			}
			if inMemory := s.Type == unix.TMPFS_MAGIC && s.Blocks*uint64(s.Bsize) == 1<<20; inMemory != (sticky != 0) {
				t.Errorf("file system %x of %d bytes", s.Type, s.Blocks*uint64(s.Bsize))
			}
			if got := mode(t, want.HostPath); got != 0o777|fs.ModeDir|sticky {
				t.Errorf("mode %v", got)
			}
			must(t, TearDown(t.Context(), root, "u1"))
			gone(t, filepath.Join(root, "pods/u1"))
		})
	}
}

func TestFileVolumesRefuse(t *testing.T) {
	paths := func(paths ...string) []v1.KeyToPath {
		var out []v1.KeyToPath
		for _, p := range paths {
			out = append(out, v1.KeyToPath{Key: "a", Path: p})
		}
		return out
	}
	at := func(path ...string) v1.Volume {
		return configMap("m", func(s *v1.ConfigMapVolumeSource) { s.Items = paths(path...) })
	}
	named := configMap("m")
	named.Name = "../v"
	for _, c := range []struct {
		name string
		v    v1.Volume
		want string
	}{
		{"no configMap", configMap("none"), `configmap "none" not found`},
		{"no secret", secret("none"), `secret "none" not found`},
		{"an object that cannot be read", configMap("broken"), `configmap "broken": it cannot be read`},
		{"no key", configMap("m", func(s *v1.ConfigMapVolumeSource) { s.Items = []v1.KeyToPath{{Key: "none", Path: "n"}} }), "configmap references non-existent config key: none"},
		{"no secret key", secret("s", func(s *v1.SecretVolumeSource) { s.Items = []v1.KeyToPath{{Key: "none", Path: "n"}} }), "references non-existent secret key: none"},
		{"a field that has no value", downward(field("a", "fails"), field("b", "fails")), "downwardAPI file a: no such field\ndownwardAPI file b: no such field"},
		{"a file without a source", downward(v1.DownwardAPIVolumeFile{Path: "a"}), "downwardAPI file a: it refers to nothing"},
		{"a token", projected(v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{}}), `unknown source for projected volume "v"`},
		{"backward", at("../x"), "invalid path ../x: must not contain '..'"},
		{"backward within", at("a/../../x"), "must not contain '..'"},
		{"absolute", at("/etc/x"), "must be a relative path"},
		{"a name of ours", at("..data"), "must not start with '..'"},
		{"a name of ours, hidden", at("./..data/x"), "must not start with '..'"},
		{"no name", at(""), "it names no file"},
		{"the volume itself", at("./"), "it names no file"},
		{"long name", at(strings.Repeat("x", 256)), "a name in it is longer than 255 bytes"},
		{"long path", at(strings.Repeat("x/", 2048) + "x"), "longer than 4096 bytes"},
		{"below a file", at("x", "x/y"), "invalid path x/y: another path of the volume is x, which cannot be a file and a folder"},
		{"backward name", named, `volume "../v" cannot be a file name`},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := testRoot(t)
			in := input()
			in.Field = func(f *v1.ObjectFieldSelector) (string, error) { return "", errors.New("no such field") }
			_, err := SetUp(t.Context(), root, testPod(c.v), in)
			if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("MountVolume.SetUp failed for volume %q : ", c.v.Name)) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(root, "pods/u1/volumes/*/v/[^.]*")); len(left) > 0 {
				t.Errorf("shows %v", left)
			}
		})
	}
}

// A value under many names takes as many times its size: no byte is written of what is too much,
// and a running pod's volumes stay as they are.
func TestFilesThatTakeTooMuchAreNotMade(t *testing.T) {
	root, in := testRoot(t), input()
	in.Bounded = true
	large := shop()
	large.secrets["s"].Data["key"] = make([]byte, 1<<20)
	many := secret("s", func(s *v1.SecretVolumeSource) {
		for k := range 65 {
			s.Items = append(s.Items, v1.KeyToPath{Key: "key", Path: fmt.Sprint(k)})
		}
	})
	const want = `the files of the pod's volumes would take 65 MiB, 65 MiB of them in volume "v", and 64 MiB are made for a pod at most`
	in.Objects = large
	if _, err := SetUp(t.Context(), root, testPod(many), in); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(PodDir(root, "u1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
	small := testPod(many)
	in.Objects = shop()
	m, err := SetUp(t.Context(), root, small, in)
	must(t, err)
	in.Objects = large
	if _, err := Refresh(t.Context(), root, small, in); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(filepath.Join(m["v"].HostPath, "7")); string(b) != "hidden" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	in.Bounded, in.Memory = false, 256<<20 // as of a version that a former agent accepted
	m, err = SetUp(t.Context(), testRoot(t), small, in)
	must(t, err)
	if b, err := os.Stat(filepath.Join(m["v"].HostPath, "7")); err != nil || b.Size() != 1<<20 {
		t.Errorf("%v, %v", b, err)
	}
}

// The pod's own text is made once, whatever number of files show it.
func TestATextUnderManyNamesIsMadeOnce(t *testing.T) {
	in, asked := input(), 0
	in.Field = func(f *v1.ObjectFieldSelector) (string, error) { asked++; return f.FieldPath, nil }
	setUp := func(v v1.Volume) {
		m, err := SetUp(t.Context(), testRoot(t), testPod(v), in)
		must(t, err)
		if b, err := os.ReadFile(filepath.Join(m["v"].HostPath, "b")); string(b) != "metadata.name" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}
	setUp(downward(field("a", "metadata.name"), field("b", "metadata.name"), field("c", "metadata.uid")))
	if asked != 2 {
		t.Errorf("%d texts were made", asked)
	}
}

func TestWithoutObjectsNoneIsFound(t *testing.T) {
	root := testRoot(t)
	_, err := SetUp(t.Context(), root, testPod(configMap("m")), Input{})
	if err == nil || !strings.HasSuffix(err.Error(), `configmap "m" not found`) {
		t.Errorf("got %v", err)
	}
	gone(t, filepath.Join(root, "pods/u1/volumes/kubernetes.io~configmap"))
}

func TestGroupReadsFileVolumes(t *testing.T) {
	root := testRoot(t)
	p := testPod(secret("s", func(s *v1.SecretVolumeSource) { s.DefaultMode = new(int32(0o400)) }))
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(777))}
	m, err := SetUp(t.Context(), root, p, input())
	must(t, err)
	dir := m["v"].HostPath
	for path, want := range map[string]fs.FileMode{
		"": 0o777 | fs.ModeDir | fs.ModeSetgid | fs.ModeSticky, "..data/": 0o755 | fs.ModeDir | fs.ModeSetgid, "key": 0o440,
	} {
		i, err := os.Stat(filepath.Join(dir, path))
		must(t, err)
		if gid := i.Sys().(*syscall.Stat_t).Gid; gid != 777 || i.Mode() != want {
			t.Errorf("%q: gid %d mode %v", path, gid, i.Mode())
		}
	}
}

func TestImageVolumesAreTheRuntimes(t *testing.T) {
	root := testRoot(t)
	v := v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "img"}}}
	if m := setUpPod(t, root, testPod(v)); m["v"] != (Mount{ReadOnly: true}) {
		t.Errorf("got %+v", m)
	}
	if e, _ := os.ReadDir(filepath.Join(root, "pods/u1/volumes")); len(e) > 0 {
		t.Errorf("made %v", e)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}
