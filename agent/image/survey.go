package image

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// Entry is one image of the runtime, the pods that need it, and whether it is removed.
type Entry struct {
	ID        string
	Names     []string // with tags
	Digests   []string
	Size      uint64 // bytes, as the runtime counts them
	Pinned    bool
	Archive   string   // the file that gives it; "": none does
	Users     []string // pods that name it, and containers of others, sorted
	FirstSeen time.Time
	LastUsed  time.Time // zero: never

	Collect bool   // it is removed with the next collection
	Why     string // it is removed, or stays
}

// survey is one listing of the images of the runtime.
type survey struct {
	entries []*Entry
	byName  map[string]*Entry // by id, canonical reference and digest
}

// survey lists all images and finds which pods need them.
func (c *Collector) survey(ctx context.Context, needs []Need) (*survey, error) {
	images, err := c.config.CRI.Images(ctx)
	if err != nil {
		return nil, err
	}
	s := newSurvey(images)
	sandboxes, err := c.config.CRI.SandboxImage(ctx)
	if err != nil {
		return nil, err
	}
	if e := s.find(sandboxes); e != nil {
		e.Pinned = true
	}
	for name, archive := range c.config.Archived() {
		if e := s.find(name); e != nil {
			e.Archive = archive
		}
	}
	containers, err := c.config.CRI.Containers(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, k := range containers {
		for _, ref := range []string{k.ImageId, k.ImageRef, k.GetImage().GetImage()} {
			s.use(ref, user(k))
		}
	}
	for _, n := range needs {
		if s.use(n.Image, n.Pod) {
			continue
		}
		// The runtime may know short names that are not known here.
		img, err := c.config.CRI.Image(ctx, &rt.ImageSpec{Image: n.Image})
		switch {
		case err == nil:
			s.use(img.GetId(), n.Pod)
		case cri.Unavailable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
			return nil, err
		default: // CRI-O's answer to a short name that may be of several registries
			s.useAlike(n.Image, n.Pod)
		}
	}
	return s, nil
}

func newSurvey(images []*rt.Image) *survey {
	s := &survey{byName: map[string]*Entry{}}
	for _, i := range images {
		if e := s.byName[i.Id]; e != nil { // some list an image once per name
			s.name(e, i)
			continue
		}
		e := &Entry{ID: i.Id, Size: i.Size, Pinned: i.Pinned}
		s.entries = append(s.entries, e)
		s.byName[i.Id] = e
		s.name(e, i)
	}
	return s
}

func (s *survey) name(e *Entry, i *rt.Image) {
	e.Pinned = e.Pinned || i.Pinned
	for _, part := range []struct {
		to   *[]string
		from []string
	}{{&e.Names, i.RepoTags}, {&e.Digests, i.RepoDigests}} {
		for _, name := range part.from {
			if !slices.Contains(*part.to, name) {
				*part.to = append(*part.to, name)
			}
			s.byName[name] = e
			if full := canonical(name); full != "" {
				s.byName[full] = e
			}
		}
	}
}

// find returns the image of that id or reference, or nil.
func (s *survey) find(ref string) *Entry {
	if ref == "" {
		return nil
	}
	for _, name := range []string{ref, "sha256:" + ref, canonical(ref)} {
		if e := s.byName[name]; e != nil && name != "" {
			return e
		}
	}
	return nil
}

// use records that a pod needs an image, if the image is there.
func (s *survey) use(ref, user string) bool {
	e := s.find(ref)
	if e == nil {
		return false
	}
	if at, found := slices.BinarySearch(e.Users, user); !found {
		e.Users = slices.Insert(e.Users, at, user)
	}
	return true
}

// useAlike records that a pod may need any image with that name, of any registry.
func (s *survey) useAlike(ref, user string) {
	meant := path.Base(canonical(ref))
	for _, e := range s.entries {
		for _, name := range slices.Concat(e.Names, e.Digests) {
			if full := canonical(name); full != "" && path.Base(full) == meant {
				s.use(e.ID, user)
			}
		}
	}
}

// user names the pod that a container belongs to.
func user(c *rt.Container) string {
	name, namespace := c.Labels["io.kubernetes.pod.name"], c.Labels["io.kubernetes.pod.namespace"]
	if name == "" || namespace == "" {
		return "container " + c.Id[:min(len(c.Id), 13)]
	}
	return namespace + "/" + name
}

// addMounted records the images that containers have mounted as volumes.
func (c *Collector) addMounted(ctx context.Context, s *survey) error {
	containers, err := c.config.CRI.Containers(ctx, nil)
	if err != nil {
		return err
	}
	for _, k := range containers {
		st, err := c.config.CRI.ContainerStatus(ctx, k.Id)
		if err != nil {
			continue // it was removed meanwhile
		}
		for _, m := range st.GetMounts() {
			s.use(strings.TrimSpace(m.GetImage().GetImage()), user(k))
		}
	}
	return nil
}
