package cri

import (
	"context"
	"path"
	"time"

	"google.golang.org/grpc"
)

// Observer is called after each call with its CRI name, such as RunPodSandbox, its duration and its
// error. For a stream it is called when that ends. Any goroutine may call it; it must not block.
type Observer func(call string, took time.Duration, err error)

// observed is a connection that reports its calls to the client's Observer.
type observed struct {
	grpc.ClientConnInterface
	client *Client
}

// Invoke makes one call.
func (o observed) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	start := time.Now()
	err := o.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	call := path.Base(method)
	o.client.patience.ended(ctx, call, time.Since(start), err)
	o.client.tell(call, start, err)
	return err
}

func (c *Client) tell(call string, start time.Time, err error) {
	if c.Observe != nil {
		c.Observe(call, time.Since(start), err)
	}
}
