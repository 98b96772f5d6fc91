package cri

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/proto" // the codec that execCodec wraps
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The container decides how much a command writes: runtimes return up to 16 MiB of each stream. Of
// a longer output the beginning and the end are kept, joined: as much as a kubelet keeps of a
// probe's output, and as much as is logged of a hook's.
const (
	execAnswerMost = 16 << 20 // of an answer, as containerd sends and the kubelet accepts
	execHead       = 10 << 10
	execTail       = 1 << 10
)

// ExecSync runs a command in a running container and returns its exit code and its output, clipped.
// timeout is rounded up to seconds; 0: until ctx ends. A command that takes longer is killed, and
// the error's code is DeadlineExceeded. An exit code other than 0 is not an error; see TooLarge for
// the error of a command that writes too much.
func (c *Client) ExecSync(ctx context.Context, id string, command []string,
	timeout time.Duration) (*rt.ExecSyncResponse, error) {
	seconds := int64((timeout + time.Second - 1) / time.Second)
	request := &rt.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: seconds}
	exec := func(ctx context.Context, in *rt.ExecSyncRequest, _ ...grpc.CallOption) (*rt.ExecSyncResponse, error) {
		a, err := c.runtime.ExecSync(ctx, in, grpc.MaxCallRecvMsgSize(execAnswerMost),
			grpc.ForceCodecV2(execCodec{protobuf()}))
		if tooLarge(err) {
			return nil, status.Error(codes.ResourceExhausted, TooLargeWords)
		}
		if err == nil { // a connection without a wire has no codec
			a.Stdout, a.Stderr = clipped(a.Stdout), clipped(a.Stderr)
		}
		return a, err
	}
	if timeout > 0 {
		return call(ctx, "ExecSync", short(id), timeout+c.Timeouts.Stop, exec, request)
	}
	response, err := exec(ctx, request)
	return response, failed("ExecSync", short(id), 0, err)
}

// TooLargeWords describes an error for which TooLarge is true.
const TooLargeWords = "the command wrote more than the 16 MiB that the runtime can tell of, " +
	"and how it ended is not known"

// TooLarge reports whether a command wrote more than an answer can hold. The command causes this,
// not the runtime.
func TooLarge(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.HasSuffix(err.Error(), TooLargeWords)
}

// tooLarge recognizes gRPC's own errors by the words of either side, as other errors have the same
// code.
func tooLarge(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "message larger than max")
}

// clipped returns a copy of the part of an output that is kept.
func clipped(out []byte) []byte {
	if len(out) <= execHead+execTail {
		return out
	}
	return append(append(make([]byte, 0, execHead+execTail), out[:execHead]...), out[len(out)-execTail:]...)
}

// execCodec decodes answers of ExecSync directly from the receive buffers: the usual codec would
// copy the whole output twice, and keep its memory.
type execCodec struct{ codec }

// Unmarshal decodes an ExecSyncResponse.
func (execCodec) Unmarshal(data mem.BufferSlice, v any) error {
	a, ok := v.(*rt.ExecSyncResponse)
	if !ok {
		return fmt.Errorf("%T is no answer of ExecSync", v)
	}
	r := data.Reader()
	defer r.Close()
	for r.Remaining() > 0 {
		if err := readField(r, a); err != nil {
			return fmt.Errorf("answer of ExecSync: %w", err)
		}
	}
	return nil
}

// readField reads one field, and skips unknown ones.
func readField(r *mem.Reader, a *rt.ExecSyncResponse) error {
	tag, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	switch number, kind := protowire.DecodeTag(tag); kind {
	case protowire.VarintType:
		n, err := binary.ReadUvarint(r)
		if number == 3 {
			a.ExitCode = int32(n)
		}
		return err
	case protowire.BytesType:
		out, err := readClipped(r)
		switch number {
		case 1:
			a.Stdout = out
		case 2:
			a.Stderr = out
		}
		return err
	default:
		return skipNumber(r, kind)
	}
}

// skipNumber skips a numeric field.
func skipNumber(r *mem.Reader, kind protowire.Type) error {
	switch kind {
	case protowire.VarintType:
		_, err := binary.ReadUvarint(r)
		return err
	case protowire.Fixed32Type:
		return skip(r, 4)
	case protowire.Fixed64Type:
		return skip(r, 8)
	default:
		return fmt.Errorf("a field has the unknown kind %d", kind)
	}
}

// readClipped reads a field of bytes and returns the part that is kept.
func readClipped(r *mem.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > uint64(r.Remaining()) {
		return nil, io.ErrUnexpectedEOF
	}
	out := make([]byte, min(n, execHead+execTail))
	head := out
	if n > uint64(len(out)) {
		head = out[:execHead]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	if err := skip(r, int(n)-len(out)); err != nil {
		return nil, err
	}
	_, err = io.ReadFull(r, out[len(head):])
	return out, err
}

func skip(r *mem.Reader, n int) error {
	_, err := r.Discard(n)
	return err
}

// Exec prepares to run a command in a running container and returns the URL where the runtime's
// streaming server runs it for the first client, which must connect soon.
func (c *Client) Exec(ctx context.Context, request *rt.ExecRequest) (url string, err error) {
	r, err := call(ctx, "Exec", short(request.ContainerId), c.Timeouts.Query, c.runtime.Exec, request)
	return r.GetUrl(), err
}

// Attach prepares to connect to the running process of a container, and returns the URL as Exec
// does.
func (c *Client) Attach(ctx context.Context, request *rt.AttachRequest) (url string, err error) {
	r, err := call(ctx, "Attach", short(request.ContainerId), c.Timeouts.Query, c.runtime.Attach, request)
	return r.GetUrl(), err
}

// PortForward prepares to forward connections to a port of a ready sandbox, and returns the URL as
// Exec does.
func (c *Client) PortForward(ctx context.Context, sandbox string, port uint16) (url string, err error) {
	r, err := call(ctx, "PortForward", short(sandbox), c.Timeouts.Query, c.runtime.PortForward,
		&rt.PortForwardRequest{PodSandboxId: sandbox, Port: []int32{int32(port)}})
	return r.GetUrl(), err
}
