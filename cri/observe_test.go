package cri_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri/critest"
)

func TestEachCallIsToldWithItsTimeAndError(t *testing.T) {
	r := critest.Start(t)
	r.Fault(critest.On("RemovePodSandbox").Fail(codes.Unknown, "busy"))
	r.Fault(critest.On("Version").Delay(20 * time.Millisecond))
	r.LikeContainerd16()
	c := dial(t, r)
	var mu sync.Mutex
	var told []string
	c.Observe = func(call string, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf("%s %v %v", call, took >= 20*time.Millisecond, err != nil))
	}
	ctx := t.Context()
	c.Version(ctx)
	c.Image(ctx, &rt.ImageSpec{Image: "absent"})
	c.RemoveSandbox(ctx, "x")
	c.Events(ctx, "", func(*rt.ContainerEventResponse) {})
	over, cancel := context.WithCancel(ctx)
	cancel()
	c.Status(over)
	want := []string{"Version true false", "ImageStatus false false", "RemovePodSandbox false true", "GetContainerEvents false true", "Status false true"}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}
