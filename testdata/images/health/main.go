// Command health answers gRPC health checks: health PORT [STATUS], where STATUS
// is of the whole server, SERVING if it is not given.
package main

import (
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	l, err := net.Listen("tcp", ":"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	h := health.NewServer()
	if len(os.Args) > 2 {
		h.SetServingStatus("", healthpb.HealthCheckResponse_ServingStatus(healthpb.HealthCheckResponse_ServingStatus_value[os.Args[2]]))
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, h)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() { <-term; s.Stop() }()
	if err := s.Serve(l); err != nil {
		log.Fatal(err)
	}
}
