package archives

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"

	"monopod/manifests/imagename"
)

// Format is how an archive is laid out.
type Format string

// Formats of archives.
const (
	OCI    Format = "oci"    // an OCI image layout in a tar
	Docker Format = "docker" // as `docker save` writes
)

// Image is one image of an archive.
type Image struct {
	Name string `json:"name"` // full, as docker.io/library/busybox:1
	ID   string `json:"id"`   // of its config, sha256:...
	As   string `json:"as"`   // its name in the archive
}

// Index is what an archive has.
type Index struct {
	Format Format  `json:"format"`
	Images []Image `json:"images"`
}

// Bounds of what is read of an archive. Layers are never kept.
const (
	maxEntries  = 1 << 16
	maxDocument = 1 << 20
	maxKept     = 16 << 20
)

// Errors of archives, in sentences with a remedy.
var (
	errCut    = errors.New("it ends too early: copy it again")
	errDamage = errors.New("it is damaged: copy it again")
	errNoTar  = errors.New("it is no archive of images: make one with docker save, or skopeo copy to oci-archive:FILE:NAME")
	errNoName = errors.New("it names no image: save it again with a full name, as docker save NAME or skopeo copy to oci-archive:FILE:NAME do")
	errLarge  = errors.New("it has more files, or larger descriptions of images, than can be read: make one archive of each image")
)

// contents are the sizes of the files of an archive by their names, and the small documents among them.
type contents struct {
	files map[string]int64
	docs  map[string][]byte
	kept  int
}

// ReadIndex reads the tar of an archive, not compressed, to its end. arch is the machine's in Go's
// words: of an image for several machines it is the one for this. If r can seek, layers are skipped.
// Beside an error the index has the names of the images, as far as they are known: who has given the
// archive to a runtime takes these back.
func ReadIndex(r io.Reader, arch string) (Index, error) {
	c := &contents{files: map[string]int64{}, docs: map[string][]byte{}}
	err := c.read(tar.NewReader(r))
	if err != nil {
		return Index{}, err
	}
	switch {
	case c.has("oci-layout") && c.has("index.json"):
		return c.oci(arch)
	case c.has("manifest.json"):
		return c.docker(arch)
	}
	return Index{}, errNoTar
}

func (c *contents) has(name string) bool {
	_, has := c.files[name]
	return has
}

func (c *contents) read(t *tar.Reader) error {
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return c.readError(err)
		case len(c.files) >= maxEntries:
			return errLarge
		}
		err = c.take(h, t)
		if err != nil {
			return c.readError(err)
		}
	}
}

// readError returns what an error of the reader means.
func (c *contents) readError(err error) error {
	switch {
	case errors.Is(err, tar.ErrHeader) && len(c.files) == 0:
		return errNoTar
	case errors.Is(err, tar.ErrHeader):
		return errDamage
	}
	return inWords(err)
}

// take takes one file of the archive.
func (c *contents) take(h *tar.Header, r io.Reader) error {
	name := path.Clean(strings.TrimPrefix(h.Name, "./"))
	if h.Typeflag == tar.TypeDir {
		return nil
	}
	c.files[name] = h.Size
	c.kept += len(name)
	if c.kept > maxKept {
		return errLarge
	}
	if h.Typeflag != tar.TypeReg || h.Size > maxDocument || h.Size == 0 {
		return nil
	}
	doc, err := document(r, h.Size)
	if err != nil || doc == nil {
		return err
	}
	c.kept += len(doc)
	if c.kept > maxKept {
		return errLarge
	}
	c.docs[name] = doc
	return nil
}

// document returns a file if it looks like JSON, else nil.
func document(r io.Reader, size int64) ([]byte, error) {
	first := make([]byte, 1)
	_, err := io.ReadFull(r, first)
	if err != nil || first[0] != '{' && first[0] != '[' {
		return nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(r, size))
	return append(first, rest...), err
}

// parse decodes a document of the archive.
func (c *contents) parse(name string, into any) error {
	doc, has := c.docs[name]
	switch {
	case c.files[name] > maxDocument:
		return errLarge
	case !has:
		return fmt.Errorf("it lacks %s: save it again", plain(name))
	}
	err := json.NewDecoder(bytes.NewReader(doc)).Decode(into)
	if err != nil {
		return fmt.Errorf("%s in it is damaged: save it again: %w", plain(name), err)
	}
	return nil
}

// plain returns a text of an archive for people: without control characters, and not too long.
func plain(text string) string {
	const most = 200
	runes := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text))
	if len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return string(runes)
}

// platform is what an image is for, in Go's words.
type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// check returns why a machine cannot run the image.
func (p platform) check(image, arch string) error {
	if p.Architecture == arch && p.OS == "linux" {
		return nil
	}
	return fmt.Errorf("its image %s is for %s/%s, and this machine is linux/%s: save that of --platform linux/%[4]s", image, plain(p.OS), plain(p.Architecture), arch)
}

// docker reads the index that `docker save` writes.
func (c *contents) docker(arch string) (Index, error) {
	var all []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	err := c.parse("manifest.json", &all)
	if err != nil {
		return Index{}, err
	}
	out := Index{Format: Docker}
	var wrong error
	for _, i := range all {
		for _, name := range i.RepoTags {
			image, err := c.image(name, path.Clean(i.Config), i.Layers, arch)
			out.Images, wrong = append(out.Images, image), cmp.Or(wrong, err)
		}
	}
	return out.named(wrong)
}

// image checks that all files of an image are there. config is the file of its config. Beside an
// error the image has its name, if that is one.
func (c *contents) image(name, config string, layers []string, arch string) (Image, error) {
	full, err := fullName(name)
	if err != nil {
		return Image{}, err
	}
	for _, file := range layers {
		if !c.has(path.Clean(file)) {
			return Image{Name: full}, fmt.Errorf("it lacks %s of its image %s: save it again", plain(file), name)
		}
	}
	var is platform
	err = c.parse(config, &is)
	if err != nil {
		return Image{Name: full}, fmt.Errorf("of its image %s: %w", name, err)
	}
	id := fmt.Sprintf("sha256:%x", sha256.Sum256(c.docs[config]))
	return Image{Name: full, ID: id, As: name}, is.check(name, arch)
}

// fullName returns an image's name with its registry and tag.
func fullName(name string) (string, error) {
	n, err := imagename.Parse(name)
	if err != nil {
		return "", fmt.Errorf("it calls an image %q, which is no name: save it again with a full name: %w", name, err)
	}
	return n.Canonical(), nil
}

// named returns the index, and what is wrong with it: it may name no image.
func (i Index) named(wrong error) (Index, error) {
	unnamed := func(i Image) bool { return i.Name == "" }
	i.Images = slices.DeleteFunc(i.Images, unnamed)
	if wrong == nil && len(i.Images) == 0 {
		wrong = errNoName
	}
	return i, wrong
}

// descriptor refers to a file of an OCI image layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Platform    *platform         `json:"platform"`
	Annotations map[string]string `json:"annotations"`
}

func (d descriptor) file() string {
	return "blobs/" + strings.Replace(d.Digest, ":", "/", 1)
}

// Annotations that name an image, the first that is there wins, as for containerd.
var nameAnnotations = []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"}

// manifest is an OCI image manifest, or an index of such.
type manifest struct {
	Manifests []descriptor `json:"manifests"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

// oci reads the index of an OCI image layout.
func (c *contents) oci(arch string) (Index, error) {
	var top manifest
	err := c.parse("index.json", &top)
	if err != nil {
		return Index{}, err
	}
	out := Index{Format: OCI}
	var wrong error
	for _, d := range top.Manifests {
		name := nameOf(d)
		if name == "" {
			continue
		}
		image, err := c.resolve(d, name, arch, 0)
		out.Images, wrong = append(out.Images, image), cmp.Or(wrong, err)
	}
	return out.named(wrong)
}

func nameOf(d descriptor) string {
	for _, key := range nameAnnotations {
		if name := d.Annotations[key]; name != "" {
			return name
		}
	}
	return ""
}

// maxDepth bounds indexes in indexes.
const maxDepth = 4

// resolve follows an image's descriptor to its config. Its errors are as image's.
func (c *contents) resolve(d descriptor, name, arch string, depth int) (Image, error) {
	full, err := fullName(name)
	if err != nil {
		return Image{}, err
	}
	if full != name { // containerd takes the name as it is, and CRI finds none but full ones
		return Image{}, fmt.Errorf("it calls an image %q, which is not a full name: save it again as docker.io/library/app:1 would be", name)
	}
	var m manifest
	err = c.parse(d.file(), &m)
	if err != nil {
		return Image{Name: full}, fmt.Errorf("of its image %s: %w", name, err)
	}
	if len(m.Manifests) == 0 || depth == maxDepth {
		var layers []string
		for _, l := range m.Layers {
			layers = append(layers, l.file())
		}
		return c.image(name, m.Config.file(), layers, arch)
	}
	at := slices.IndexFunc(m.Manifests, func(d descriptor) bool {
		return d.Platform == nil || d.Platform.Architecture == arch && d.Platform.OS == "linux"
	})
	if at < 0 {
		return Image{Name: full}, fmt.Errorf("its image %s is for other machines than linux/%s: save that of --platform linux/%[2]s", name, arch)
	}
	return c.resolve(m.Manifests[at], name, arch, depth+1)
}
