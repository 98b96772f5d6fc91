package podresources

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"monopod/agent/panics"
)

// methods are the names of the methods in metrics.
var methods = map[string]string{
	api.PodResourcesLister_List_FullMethodName:                    "list",
	api.PodResourcesLister_Get_FullMethodName:                     "get",
	api.PodResourcesLister_GetAllocatableResources_FullMethodName: "get_allocatable",
}

// guard stands between clients and the server.
type guard struct {
	limit limit
	count func(method string, isRefused bool)
	log   *slog.Logger
}

// answer calls a method, unless there were too many calls. Its panic becomes its error.
func (g *guard) answer(ctx context.Context, q any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (answer any, err error) {
	if !g.limit.allows(time.Now()) {
		return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	fault := panics.Contain(func() { answer, err = call(ctx, q) })
	if fault != nil {
		g.log.Error("request about resources of pods not answered", panics.Logged(fault)...)
		answer, err = nil, status.Error(codes.Internal, "monopod itself went wrong: its log has more")
	}
	g.count(methods[info.FullMethod], err != nil)
	return answer, err
}

// A kubelet's limits: one request each 10 ms, over time, of which 10 may come at once.
const (
	every = 10 * time.Millisecond
	burst = 10
)

// limit bounds the requests of all clients together.
type limit struct {
	mu   sync.Mutex
	next time.Time // when the next request is due, had there been no burst
}

// allows reports whether one more request may be answered now, and counts it if so.
func (l *limit) allows(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next.Before(now) {
		l.next = now
	}
	if l.next.Sub(now) > (burst-1)*every {
		return false
	}
	l.next = l.next.Add(every)
	return true
}
