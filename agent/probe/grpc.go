package probe

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// Limits of what a server can make this process hold, in bytes: an answer has one number, and a
// message is in a header. A connection can have 64 KiB in transit, HTTP/2's own limit, and no more
// later.
const (
	grpcAnswerLimit = 4 << 10
	grpcHeaderLimit = 16 << 10
	grpcWindow      = 64<<10 - 1
)

// grpc succeeds when the health service reports that the service serves. timeout covers connecting
// and the request together.
func (p *Prober) grpc(ctx context.Context, address, service string, timeout time.Duration) Outcome {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return p.dial(ctx, "tcp", to) }),
		grpc.WithUserAgent(userAgent), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithReadBufferSize(0), grpc.WithWriteBufferSize(0),
		grpc.WithMaxHeaderListSize(grpcHeaderLimit), grpc.WithStaticStreamWindowSize(grpcWindow), grpc.WithStaticConnWindowSize(grpcWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(grpcAnswerLimit)))
	if err != nil {
		return Outcome{Failure, fmt.Sprintf("error: failed to connect service at %q: %v", address, err)}
	}
	defer conn.Close()
	// The default authority is the address, as servers expect.
	answer, err := health.NewHealthClient(conn).Check(ctx, &health.HealthCheckRequest{Service: service})
	if err != nil {
		return Outcome{Failure, grpcTrouble(conn, address, timeout, err)}
	}
	if answer.GetStatus() != health.HealthCheckResponse_SERVING {
		return Outcome{Failure, fmt.Sprintf("service unhealthy (responded with %q)", answer.GetStatus().String())}
	}
	return Outcome{Success, "service healthy"}
}

// grpcTrouble returns the error in the kubelet's words.
func grpcTrouble(conn *grpc.ClientConn, address string, timeout time.Duration, err error) string {
	s := status.Convert(err)
	switch {
	case conn.GetState() != connectivity.Ready && (s.Code() == codes.DeadlineExceeded || s.Code() == codes.Unavailable):
		return fmt.Sprintf("timeout: failed to connect service %q within %s: %s", address, timeout, s.Message())
	case s.Code() == codes.Unimplemented:
		return fmt.Sprintf("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", s.Message())
	case s.Code() == codes.DeadlineExceeded:
		return fmt.Sprintf("timeout: health rpc did not complete within %s", timeout)
	}
	return fmt.Sprintf("error: health rpc probe failed: %v", err)
}
