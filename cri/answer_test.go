package cri

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// hollow is a runtime that answers each call well and says nothing: what an
// answer was given stays as fill made it.
type hollow struct{ fill func(reply any) }

func (h hollow) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	if h.fill != nil {
		h.fill(reply)
	}
	return nil
}

func (hollow) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	panic("no streams here")
}

func TestAnAnswerWithoutItsContentIsAnError(t *testing.T) {
	ctx := t.Context()
	pod := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Namespace: "default", Name: "web"}}
	image := &rt.ImageSpec{Image: "img:1"}
	rows := map[string]struct {
		call func(c *Client) (any, error)
		fill func(reply any)
		want string
	}{
		"status of a container": {
			call: func(c *Client) (any, error) { return c.ContainerStatus(ctx, "c1") },
			want: "ContainerStatus c1: the runtime answered without a status"},
		"status of a sandbox": {
			call: func(c *Client) (any, error) { return c.SandboxStatus(ctx, "s1") },
			want: "PodSandboxStatus s1: the runtime answered without a status"},
		"status of the runtime": {
			call: func(c *Client) (any, error) { return c.Status(ctx) },
			want: "Status: the runtime answered without a status"},
		"id of a sandbox": {
			call: func(c *Client) (any, error) { return c.RunSandbox(ctx, pod, "") },
			want: "RunPodSandbox default/web: the runtime answered without an id"},
		"id of a container": {
			call: func(c *Client) (any, error) { return c.CreateContainer(ctx, "s1", &rt.ContainerConfig{}, pod) },
			want: "CreateContainer default/web/: the runtime answered without an id"},
		"reference of a pulled image": {
			call: func(c *Client) (any, error) { return c.PullImage(ctx, image, nil, pod) },
			want: "PullImage img:1: the runtime answered without a reference of the image"},
		"name of a listed container": {
			call: func(c *Client) (any, error) { return c.Containers(ctx, nil) },
			fill: func(reply any) {
				reply.(*rt.ListContainersResponse).Containers = []*rt.Container{{Id: "c1"}}
			},
			want: "ListContainers: the runtime answered without the metadata of container c1"},
		"name of a listed sandbox": {
			call: func(c *Client) (any, error) { return c.Sandboxes(ctx, nil) },
			fill: func(reply any) {
				reply.(*rt.ListPodSandboxResponse).Items = []*rt.PodSandbox{{Id: "s1"}}
			},
			want: "ListPodSandbox: the runtime answered without the metadata of sandbox s1"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			_, err := row.call(New(hollow{row.fill}))
			if err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Fatalf("error %v, want %s", err, row.want)
			}
			if NotFound(err) || Unavailable(err) || Unimplemented(err) || Busy(err) {
				t.Errorf("%v is taken for another kind of error", err)
			}
		})
	}
}

// What a runtime may leave out is no error.
func TestWhatAnAnswerMayLackIsEmpty(t *testing.T) {
	ctx, c := t.Context(), New(hollow{})
	if img, err := c.Image(ctx, &rt.ImageSpec{Image: "img:1"}); img != nil || err != nil {
		t.Errorf("image %v, %v", img, err)
	}
	if fs, err := c.ImageFS(ctx); fs != nil || err != nil {
		t.Errorf("file system %v, %v", fs, err)
	}
	if dir, err := c.ImageDir(ctx); dir != "" || err != nil {
		t.Errorf("folder %q, %v", dir, err)
	}
	if v, err := c.Version(ctx); v == nil || err != nil {
		t.Errorf("version %v, %v", v, err)
	}
	if config, err := c.RuntimeConfig(ctx); config.GetLinux() != nil || err != nil {
		t.Errorf("config %v, %v", config, err)
	}
}
