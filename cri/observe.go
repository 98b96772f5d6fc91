package cri

import (
	"context"
	"path"
	"time"

	"google.golang.org/grpc"
)

// Observer is called after each call: its name in the CRI, such as
// RunPodSandbox, how long it took, and how it failed. A stream counts when it
// ends. It is called by any goroutine and must not block.
type Observer func(call string, took time.Duration, err error)

// observed is a connection whose calls the client's Observer sees.
type observed struct {
	grpc.ClientConnInterface
	client *Client
}

// Invoke carries out one call.
func (o observed) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	start := time.Now()
	err := o.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	o.client.tell(path.Base(method), start, err)
	return err
}

func (c *Client) tell(call string, start time.Time, err error) {
	if c.Observe != nil {
		c.Observe(call, time.Since(start), err)
	}
}
