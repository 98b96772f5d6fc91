package critest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageService is the CRI's ImageService; what it lacks is Unimplemented.
type imageService struct {
	rt.UnimplementedImageServiceServer
	r *Runtime
}

// pull is how the pull of one image goes.
type pull struct {
	delay time.Duration
	err   error
	auth  func(*rt.AuthConfig) error
}

const imageSize = 1 << 20

// AddImage makes images present on the node.
func (r *Runtime) AddImage(refs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range refs {
		r.addImage(ref)
	}
	r.change()
}

// ImportImage gives the node an image with that id under a name.
func (r *Runtime) ImportImage(name, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.images, normal(name))
	r.addImage(name).Id = id
	r.change()
}

// MoveTag makes the reference of a present image stand for another one. What it stood for
// stays, under its digest.
func (r *Runtime) MoveTag(ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moveTag(ref)
}

// Republish makes the registry give another image for the reference of a present one, from the next
// pull on. It returns the other image's id.
func (r *Runtime) Republish(ref string) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.republished[normal(ref)] = true
	return r.imageID(nextDigest(r.image(ref)))
}

// nextDigest is the digest of the image to which a tag moves.
func nextDigest(old *rt.Image) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(old.Id))) }

// moveTag: r.mu is held.
func (r *Runtime) moveTag(ref string) {
	old := r.image(ref)
	delete(r.images, normal(ref))
	r.images[old.RepoDigests[0]], old.RepoTags = old, nil
	fresh := r.addImage(ref)
	digest := nextDigest(old)
	name, _, _ := strings.Cut(old.RepoDigests[0], "@")
	fresh.Id, fresh.RepoDigests[0] = r.imageID(digest), name+"@"+digest
}

// OnPull tells how long pulls of ref take and how they end (nil: well). At first
// every pull succeeds at once; ref "" is every image without words of its own.
func (r *Runtime) OnPull(ref string, delay time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulls[normal(ref)] = pull{delay: delay, err: err}
}

// Guard makes pulls of ref end as admit says of the credentials, which are nil
// for a pull without any.
func (r *Runtime) Guard(ref string, admit func(*rt.AuthConfig) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulls[normal(ref)] = pull{auth: admit}
}

// Pin marks an image as one that the runtime wants to be kept.
func (r *Runtime) Pin(ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if image := r.image(ref); image != nil {
		image.Pinned = true
		return
	}
	r.t.Errorf("critest: no image %q", ref)
}

// Resize sets the size of an image that is present, in bytes.
func (r *Runtime) Resize(ref string, size uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if image := r.image(ref); image != nil {
		image.Size = size
		return
	}
	r.t.Errorf("critest: no image %q", ref)
}

// ImageBytes returns what all images take together.
func (r *Runtime) ImageBytes() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.imageBytes()
}

// imageBytes: r.mu is held.
func (r *Runtime) imageBytes() uint64 {
	sum := uint64(0)
	for _, image := range r.images {
		sum += image.Size
	}
	return sum
}

// SetImageDir sets the folder that ImageFsInfo names, "" for none.
func (r *Runtime) SetImageDir(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.imageDir = dir
}

// SetSandboxImage sets the image that a verbose Status names as the sandboxes'.
func (r *Runtime) SetSandboxImage(ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandboxImage = ref
}

// Images returns the references of the images that are present, sorted.
func (r *Runtime) Images() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.images))
}

func (s *imageService) PullImage(ctx context.Context, q *rt.PullImageRequest) (*rt.PullImageResponse, error) {
	ref := q.GetImage().GetImage()
	if normal(ref) == "" {
		return nil, unknown("failed to parse image reference %q: invalid reference format", ref)
	}
	s.r.mu.Lock()
	how, ok := s.r.pulls[normal(ref)]
	if !ok {
		how = s.r.pulls[""]
	}
	s.r.mu.Unlock()
	if err := pause(ctx, how.delay); err != nil {
		return nil, err
	}
	if how.auth != nil {
		how.err = how.auth(q.GetAuth())
	}
	if how.err != nil {
		if _, ok := status.FromError(how.err); ok {
			return nil, how.err
		}
		return nil, unknown("failed to pull and unpack image %q: %v", normal(ref), how.err)
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.r.republished[normal(ref)] && s.r.image(ref) != nil {
		delete(s.r.republished, normal(ref))
		s.r.moveTag(ref)
	}
	image := s.r.addImage(ref)
	s.r.change()
	return &rt.PullImageResponse{ImageRef: image.Id}, nil
}

func (s *imageService) ImageStatus(_ context.Context, q *rt.ImageStatusRequest) (*rt.ImageStatusResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return &rt.ImageStatusResponse{Image: s.r.image(q.GetImage().GetImage())}, nil
}

func (s *imageService) ListImages(_ context.Context, q *rt.ListImagesRequest) (*rt.ListImagesResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	response := &rt.ListImagesResponse{}
	wanted := q.GetFilter().GetImage().GetImage()
	for _, ref := range slices.Sorted(maps.Keys(s.r.images)) {
		if image := s.r.images[ref]; wanted == "" || image == s.r.image(wanted) {
			response.Images = append(response.Images, image)
		}
	}
	return response, nil
}

func (s *imageService) RemoveImage(_ context.Context, q *rt.RemoveImageRequest) (*rt.RemoveImageResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if image := s.r.image(q.GetImage().GetImage()); image != nil {
		maps.DeleteFunc(s.r.images, func(_ string, i *rt.Image) bool { return i == image })
		s.r.change()
	}
	return &rt.RemoveImageResponse{}, nil
}

func (s *imageService) ImageFsInfo(context.Context, *rt.ImageFsInfoRequest) (*rt.ImageFsInfoResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.r.imageDir == "" {
		return &rt.ImageFsInfoResponse{}, nil
	}
	return &rt.ImageFsInfoResponse{ImageFilesystems: []*rt.FilesystemUsage{{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &rt.FilesystemIdentifier{Mountpoint: s.r.imageDir},
		UsedBytes:  &rt.UInt64Value{Value: s.r.imageBytes()},
		InodesUsed: &rt.UInt64Value{Value: uint64(len(s.r.images))},
	}}}, nil
}

// addImage: r.mu is held.
func (r *Runtime) addImage(ref string) *rt.Image {
	name := normal(ref)
	if image := r.images[name]; image != nil {
		return image
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name)))
	image := &rt.Image{Id: r.imageID(digest), Size: imageSize, Spec: &rt.ImageSpec{Image: name}}
	if named, err := reference.ParseNormalizedNamed(name); err != nil {
		r.t.Errorf("critest: image %q: %v", ref, err)
	} else if digested, ok := named.(reference.Digested); ok {
		image.RepoDigests = []string{named.Name() + "@" + digested.Digest().String()}
	} else {
		image.RepoTags = []string{name}
		image.RepoDigests = []string{named.Name() + "@" + digest}
	}
	r.images[name] = image
	return image
}

// image finds an image by reference or id, or returns nil. r.mu is held.
func (r *Runtime) image(ref string) *rt.Image {
	if image := r.images[normal(ref)]; image != nil {
		return image
	}
	for _, image := range r.images {
		if image.Id == ref || slices.Contains(image.RepoDigests, normal(ref)) {
			return image
		}
	}
	return nil
}

// normal returns the full form of an image's reference, as containerd's CRI
// makes it ("busybox" is "docker.io/library/busybox:latest"); "" if it is none.
func normal(ref string) string {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return ""
	}
	return named.String()
}
