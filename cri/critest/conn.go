package critest

import (
	"context"
	"fmt"
	"io"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// errCut is what a client sees when its connection breaks during a call.
var errCut = status.Error(codes.Unavailable, "error reading from server: EOF")

// Conn returns a connection without a socket, for cri.New. It waits on nothing
// but channels and timers, as a synctest bubble needs.
func (r *Runtime) Conn() grpc.ClientConnInterface { return direct{r} }

// unary and stream are where every call passes, from the socket or direct.

func (r *Runtime) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, do grpc.UnaryHandler) (any, error) {
	message := request.(proto.Message)
	call := r.began(path.Base(info.FullMethod), message)
	response, err := r.carryOut(ctx, call.Method, message, func() (any, error) { return do(ctx, request) })
	return response, r.ended(call, response, err)
}

func (r *Runtime) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, do grpc.StreamHandler) error {
	call := r.began(path.Base(info.FullMethod), nil)
	_, err := r.carryOut(stream.Context(), call.Method, nil, func() (any, error) { return nil, do(service, stream) })
	return r.ended(call, nil, err)
}

// direct calls the services through their descriptors. Messages are copied on
// the way in and out; a call ends with its context even if its work does not.
type direct struct{ r *Runtime }

func (d direct) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	down, err := d.connect(ctx)
	if err != nil {
		return err
	}
	service, desc := d.service(method)
	for _, m := range desc.Methods {
		if m.MethodName == path.Base(method) {
			return d.invoke(ctx, down, reply, func(ctx context.Context) (any, error) {
				return m.Handler(service, ctx, mover(proto.Clone(args.(proto.Message))), d.r.unary)
			})
		}
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

func (d direct) invoke(ctx context.Context, down chan struct{}, reply any, do func(context.Context) (any, error)) error {
	type answer struct {
		response any
		err      error
	}
	answers := make(chan answer, 1)
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		response, err := do(work)
		answers <- answer{response, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return a.err
		}
		return decoder(a.response.(proto.Message))(reply)
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-down:
		return errCut
	}
}

func (d direct) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	down, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &pipe{ctx: ctx, down: down, requests: make(chan proto.Message, 1), responses: make(chan proto.Message), ended: make(chan struct{})}
	service, _ := d.service(method)
	go func() {
		defer cancel()
		p.err = d.r.stream(service, serverEnd{p}, &grpc.StreamServerInfo{FullMethod: method, IsServerStream: true}, desc.Handler)
		close(p.ended)
	}()
	go func() {
		defer cancel()
		select {
		case <-down:
		case <-ctx.Done():
		}
	}()
	return clientEnd{p}, nil
}

// connect refuses while the runtime is down; the channel is closed when it goes down.
func (d direct) connect(ctx context.Context) (chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	if d.r.isDown() {
		return nil, status.Error(codes.Unavailable, "connection error: the runtime is down")
	}
	return d.r.down, nil
}

func (d direct) service(method string) (any, *grpc.ServiceDesc) {
	if path.Base(path.Dir(method)) == rt.ImageService_ServiceDesc.ServiceName {
		return &imageService{r: d.r}, &rt.ImageService_ServiceDesc
	}
	return &runtimeService{r: d.r}, &rt.RuntimeService_ServiceDesc
}

// decoder returns a function that copies from into the message it is given.
func decoder(from proto.Message) func(any) error {
	return func(into any) error {
		to, ok := into.(proto.Message)
		if !ok {
			return fmt.Errorf("critest: %T is no message", into)
		}
		proto.Reset(to)
		proto.Merge(to, from)
		return nil
	}
}

// mover is decoder for a message of which nothing else is left: it shares its parts.
func mover(from proto.Message) func(any) error {
	return func(into any) error {
		to, ok := into.(proto.Message)
		if !ok {
			return fmt.Errorf("critest: %T is no message", into)
		}
		from.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			to.ProtoReflect().Set(field, v)
			return true
		})
		return nil
	}
}

// pipe joins the two ends of a server stream.
type pipe struct {
	ctx       context.Context // the stream's: ends with the caller, the runtime or the handler
	down      chan struct{}
	requests  chan proto.Message
	responses chan proto.Message
	ended     chan struct{}
	err       error // to be read after ended
}

type clientEnd struct{ *pipe }

func (c clientEnd) Context() context.Context     { return c.ctx }
func (c clientEnd) Header() (metadata.MD, error) { return nil, nil }
func (c clientEnd) Trailer() metadata.MD         { return nil }
func (c clientEnd) CloseSend() error             { return nil }
func (c clientEnd) SendMsg(m any) error          { c.requests <- proto.Clone(m.(proto.Message)); return nil }

func (c clientEnd) RecvMsg(m any) error {
	select {
	case response := <-c.responses:
		return decoder(response)(m)
	case <-c.ended:
	}
	select {
	case <-c.down:
		return errCut
	default:
	}
	if c.err == nil {
		return io.EOF
	}
	return c.err
}

type serverEnd struct{ *pipe }

func (s serverEnd) Context() context.Context     { return s.ctx }
func (s serverEnd) SetHeader(metadata.MD) error  { return nil }
func (s serverEnd) SendHeader(metadata.MD) error { return nil }
func (s serverEnd) SetTrailer(metadata.MD)       {}

func (s serverEnd) SendMsg(m any) error {
	select {
	case s.responses <- proto.Clone(m.(proto.Message)):
		return nil
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

func (s serverEnd) RecvMsg(m any) error {
	select {
	case request := <-s.requests:
		return decoder(request)(m)
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}
