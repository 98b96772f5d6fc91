package cri_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// CRI-O closes a connection whose first call is of another content type.
func TestEveryCallMayBeTheFirstOfAConnection(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, c *cri.Client){
		"Version": func(ctx context.Context, c *cri.Client) { _, _ = c.Version(ctx) },
		"ListContainers": func(ctx context.Context, c *cri.Client) {
			_, _ = c.ListContainers(ctx, nil, &cri.List[rt.Container]{})
		},
		"ListPodSandbox": func(ctx context.Context, c *cri.Client) {
			_, _ = c.ListSandboxes(ctx, nil, &cri.List[rt.PodSandbox]{})
		},
		"GetContainerEvents": func(ctx context.Context, c *cri.Client) {
			_ = c.Events(ctx, "i1", func(*rt.ContainerEventResponse) {})
		},
		"ExecSync": func(ctx context.Context, c *cri.Client) { _, _ = c.ExecSync(ctx, "c1", []string{"true"}, 0) },
	} {
		endpoint, seen := contentTypes(t)
		c, err := cri.Dial(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		do(t.Context(), c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if got := <-seen; got != "application/grpc" {
			t.Errorf("%s is of content type %q", name, got)
		}
	}
}

// contentTypes serves nothing, and tells the content type of each call to it.
func contentTypes(t *testing.T) (endpoint string, seen <-chan string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	types := make(chan string, 10)
	tell := func(_ any, s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		types <- md.Get("content-type")[0]
		return nil
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(tell))
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return "unix://" + socket, types
}
