package cri_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// A repeated call that makes something hangs on CRI-O until its caller leaves.
func TestCallsThatMakeSomethingAreLeftSoonerOnCRIO(t *testing.T) {
	for _, row := range []struct {
		runtime                    string
		sandbox, container, starts time.Duration
	}{
		{"containerd", 4 * time.Minute, 2 * time.Minute, 2 * time.Minute},
		{"cri-o", 40 * time.Second, 40 * time.Second, 2 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := cri.New(hanging(row.runtime))
			if _, err := c.Version(t.Context()); err != nil {
				t.Fatal(err)
			}
			lasts := func(call string, want time.Duration, do func() error) {
				began := time.Now()
				if err := do(); err == nil || time.Since(began) != want {
					t.Errorf("%s: %s ended after %s with %v, want %s", row.runtime, call, time.Since(began), err, want)
				}
			}
			pod := &rt.PodSandboxConfig{}
			lasts("RunPodSandbox", row.sandbox, func() error { _, err := c.RunSandbox(t.Context(), pod, ""); return err })
			lasts("CreateContainer", row.container, func() error {
				_, err := c.CreateContainer(t.Context(), "b", &rt.ContainerConfig{}, pod)
				return err
			})
			lasts("StartContainer", row.starts, func() error { return c.StartContainer(t.Context(), "c") })
		})
	}
}

// hanging is a connection to a runtime of that name which answers nothing else.
type hanging string

func (h hanging) Invoke(ctx context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	if v, ok := reply.(*rt.VersionResponse); ok {
		v.RuntimeName = string(h)
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (h hanging) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, context.Canceled
}
