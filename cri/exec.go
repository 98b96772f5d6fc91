package cri

import (
	"context"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Exec prepares to run a command in a running container and returns the URL at
// which the runtime's streaming server runs it for the first client, which must
// connect soon.
func (c *Client) Exec(ctx context.Context, request *rt.ExecRequest) (url string, err error) {
	r, err := call(ctx, "Exec", short(request.ContainerId), c.Timeouts.Query, c.runtime.Exec, request)
	return r.GetUrl(), err
}
