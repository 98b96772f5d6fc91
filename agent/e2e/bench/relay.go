package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec's name on the wire
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
)

// relay passes calls on to a runtime and notes when each came.
type relay struct {
	server *grpc.Server
	target *grpc.ClientConn
	served sync.WaitGroup

	mu    sync.Mutex
	calls []call
}

// call is one that a client made.
type call struct {
	method string
	at     time.Time
}

// newRelay listens at socket for calls to the runtime at target, a gRPC address.
func newRelay(socket, target string) (*relay, error) {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	r := &relay{target: conn}
	r.server = grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.MaxRecvMsgSize(16<<20), grpc.UnknownServiceHandler(r.pass))
	r.served.Go(func() { _ = r.server.Serve(l) }) // ends with Close
	return r, nil
}

// Close ends all calls.
func (r *relay) Close() error {
	r.server.Stop()
	r.served.Wait()
	return r.target.Close()
}

// after returns the calls since then.
func (r *relay) after(since time.Time) []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []call
	for _, c := range r.calls {
		if c.at.After(since) {
			all = append(all, c)
		}
	}
	return all
}

// pass carries one call: a single request, then answers until there are no more.
func (r *relay) pass(_ any, client grpc.ServerStream) error {
	at := time.Now()
	method, _ := grpc.MethodFromServerStream(client)
	r.mu.Lock()
	r.calls = append(r.calls, call{method, at})
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(client.Context())
	defer cancel()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	runtime, err := r.target.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	var m mem.BufferSlice
	if err := client.RecvMsg(&m); err != nil {
		return err
	}
	if err := errors.Join(runtime.SendMsg(&m), runtime.CloseSend()); err != nil {
		return err
	}
	for {
		switch err := runtime.RecvMsg(&m); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := client.SendMsg(&m); err != nil {
			return err
		}
	}
}

// raw is a codec that leaves messages as they are.
type raw struct{}

var _ encoding.CodecV2 = raw{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	m := *v.(*mem.BufferSlice)
	m.Ref() // the sender frees it
	return m, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*mem.BufferSlice) = mem.BufferSlice{mem.SliceBuffer(data.Materialize())}
	return nil
}
