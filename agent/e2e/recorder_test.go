//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1" // registers the messages

	"monopod/agent/e2e/golden"
)

// recorder sits between an agent and its runtime. It passes every call on and
// keeps those that change something. Any goroutine may use it.
type recorder struct {
	endpoint string
	conn     *grpc.ClientConn // to the runtime

	mu    sync.Mutex
	calls []golden.Call // in the order of their ends
	err   error         // the first call that could not be kept
}

const recordLimit = 64 << 20 // bytes of a message; what runtimes allow themselves

// newRecorder serves the runtime's CRI on a socket of its own, until the test ends.
func newRecorder(t *testing.T, runtime string) *recorder {
	t.Helper()
	conn, err := grpc.NewClient(runtime, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(recordLimit)))
	check(t, err)
	socket := filepath.Join(t.TempDir(), "cri.sock")
	l, err := net.Listen("unix", socket)
	check(t, err)
	r := &recorder{endpoint: "unix://" + socket, conn: conn}
	s := grpc.NewServer(grpc.UnknownServiceHandler(r.pass), grpc.MaxRecvMsgSize(recordLimit))
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
		_ = conn.Close()
	})
	return r
}

// pass hands one call to the runtime and its answer back.
func (r *recorder) pass(_ any, in grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(in)
	method, err := findMethod(path)
	if err != nil {
		return status.Error(codes.Unimplemented, err.Error())
	}
	request := newMessage(method.Input())
	if err := in.RecvMsg(request); err != nil {
		return err
	}
	if method.IsStreamingServer() {
		return r.stream(in, path, method, request)
	}
	response := newMessage(method.Output())
	err = r.conn.Invoke(in.Context(), path, request, response)
	r.keep(string(method.Name()), request, response, err)
	if err != nil {
		return err
	}
	return in.SendMsg(response)
}

func (r *recorder) stream(in grpc.ServerStream, path string, method protoreflect.MethodDescriptor, request proto.Message) error {
	out, err := r.conn.NewStream(in.Context(), &grpc.StreamDesc{ServerStreams: true}, path)
	if err != nil {
		return err
	}
	if err := errors.Join(out.SendMsg(request), out.CloseSend()); err != nil {
		return err
	}
	for {
		m := newMessage(method.Output())
		if err := out.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := in.SendMsg(m); err != nil {
			return err
		}
	}
}

// keep notes a call unless it only asks.
func (r *recorder) keep(method string, request, response proto.Message, failed error) {
	for _, ending := range []string{"Status", "Stats", "Info", "Config"} {
		if strings.HasSuffix(method, ending) {
			return
		}
	}
	if strings.HasPrefix(method, "List") || method == "Version" {
		return
	}
	if failed != nil {
		response = nil
	}
	c, err := golden.NewCall(method, request, response)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls, r.err = append(r.calls, c), errors.Join(r.err, err)
}

// of returns the calls that were about each pod, by its name.
func (r *recorder) of(t *testing.T) map[string][]golden.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	check(t, r.err)
	out := map[string][]golden.Call{}
	owner := map[string]string{} // pods by the ids of their sandboxes and containers
	for _, c := range r.calls {
		pod := owner[word(c.Request, "pod_sandbox_id")] + owner[word(c.Request, "container_id")]
		if c.Method == "RunPodSandbox" {
			config, _ := c.Request["config"].(map[string]any)
			metadata, _ := config["metadata"].(map[string]any)
			pod = word(metadata, "name")
		}
		for _, made := range []string{word(c.Response, "pod_sandbox_id"), word(c.Response, "container_id")} {
			if made != "" {
				owner[made] = pod
			}
		}
		out[pod] = append(out[pod], c)
	}
	return out
}

func word(v map[string]any, key string) string {
	s, _ := v[key].(string)
	return s
}

func findMethod(path string) (protoreflect.MethodDescriptor, error) {
	service, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if s, ok := d.(protoreflect.ServiceDescriptor); err == nil && ok {
		if m := s.Methods().ByName(protoreflect.Name(name)); m != nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s is no call that is known here", path)
}

func newMessage(d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err) // Go types and descriptors come from the same file
	}
	return t.New().Interface()
}
