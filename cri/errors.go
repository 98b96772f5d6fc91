package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// callError is the error of a failed call: "RunPodSandbox default/web: <the runtime's words>".
type callError struct {
	call, object string // object may be empty
	err          error  // holds a gRPC status
}

func (e *callError) Error() string {
	words := e.err.Error()
	if s, ok := status.FromError(e.err); ok {
		words = s.Message()
		if words == "" {
			words = s.Code().String()
		}
		if s.Code() == codes.Unavailable {
			words = withoutTransport(words)
		}
	}
	if e.object == "" {
		return e.call + ": " + words
	}
	return e.call + " " + e.object + ": " + words
}

// withoutTransport removes gRPC's own words around a connection error.
func withoutTransport(words string) string {
	quoted, wrapped := strings.CutPrefix(words, "connection error: desc = ")
	if text, err := strconv.Unquote(quoted); err == nil && wrapped {
		words = text
	}
	if _, said, found := strings.Cut(words, noAnswer+" "); found {
		return noAnswer + " " + said
	}
	if path, hangs := hung(words); hangs {
		return fmt.Sprintf("%s %s (it accepts connections and sends nothing): restart the container runtime, or give another socket with --runtime-endpoint", noAnswer, path)
	}
	return strings.TrimPrefix(words, "transport: ")
}

// hung returns the socket of a process that sends nothing, for which the kernel accepts connections
// all the same: gRPC closes such a connection, and then has only this to say of it.
func hung(words string) (path string, hangs bool) {
	if !strings.HasPrefix(words, "error reading server preface: ") || !strings.HasSuffix(words, ": "+net.ErrClosed.Error()) {
		return "", false
	}
	_, path, hangs = strings.Cut(words, "->")
	return strings.TrimSuffix(path, ": "+net.ErrClosed.Error()), hangs
}

func (e *callError) Unwrap() error { return e.err }

// Is lets errors.Is find the context's errors, which gRPC converts to codes.
func (e *callError) Is(target error) bool {
	switch target {
	case context.Canceled:
		return status.Code(e.err) == codes.Canceled
	case context.DeadlineExceeded:
		return status.Code(e.err) == codes.DeadlineExceeded
	}
	return false
}

// failed adds the call and object to an error; nil stays nil. within is the timeout of the call if
// its deadline has passed, else 0.
func failed(call, object string, within time.Duration, err error) error {
	if err == nil {
		return nil
	}
	if within > 0 {
		err = late(within, err)
	}
	return &callError{call, object, err}
}

// late gives a call that met its deadline a readable error. The runtime may notice the deadline
// first, and then returns Canceled.
func late(within time.Duration, err error) error {
	s := status.Convert(err)
	if s.Code() != codes.DeadlineExceeded && s.Code() != codes.Canceled {
		return err
	}
	words := fmt.Sprintf("no answer within %s", within.Round(time.Millisecond))
	if s.Code() == codes.DeadlineExceeded && s.Message() != context.DeadlineExceeded.Error() {
		words += ": " + s.Message()
	}
	return status.Error(codes.DeadlineExceeded, words)
}

// unlessGone drops the error of a stop or removal whose object is gone: for some calls containerd
// 1.6 returns one where containerd 2 does not.
func unlessGone(err error) error {
	if NotFound(err) {
		return nil
	}
	return err
}

// NotFound reports whether the runtime does not know the object.
func NotFound(err error) bool { return err != nil && status.Code(err) == codes.NotFound }

// Unimplemented reports whether the runtime does not have the call.
func Unimplemented(err error) bool { return err != nil && status.Code(err) == codes.Unimplemented }

// Unavailable reports whether no runtime answered: the connection is down, was cut during the call
// (which may have been carried out), or the runtime is still starting.
func Unavailable(err error) bool {
	if err == nil {
		return false
	}
	// containerd 1.6 returns this with code Unknown while its CRI service recovers.
	return status.Code(err) == codes.Unavailable || strings.Contains(err.Error(), "server is not initialized yet")
}

// BrokenOff reports whether the start of a container failed for the runtime's own reasons, which say
// nothing about the container: it was broken off, because its caller ended or did not wait any longer
// (containerd, unlike CRI-O, does that, and takes the container for one that has exited), or it was
// to join namespaces of the process 0, which is what containerd 1.6 takes for the sandbox's when its
// shim did not answer within 2 s. There are only these words for it.
func BrokenOff(st *rt.ContainerStatus) bool {
	if st.State != rt.ContainerState_CONTAINER_EXITED || st.Reason != "StartError" || st.StartedAt != 0 {
		return false
	}
	said := strings.TrimSuffix(st.Message, ": unknown")
	return strings.HasSuffix(said, context.Canceled.Error()) || strings.HasSuffix(said, context.DeadlineExceeded.Error()) ||
		strings.Contains(said, "namespace path: lstat /proc/0/ns/")
}

// NameReserved reports whether the name of a sandbox or container to create is taken: by an earlier
// call that has not ended, or by an object that the caller may not see. Where CRI-O waits for the end
// of an earlier call until its caller leaves, that makes the object and no other one has the name.
func NameReserved(err error) bool {
	return Busy(err) && status.Code(err) != codes.DeadlineExceeded && (strings.Contains(err.Error(), "failed to reserve") || strings.Contains(err.Error(), "name is reserved"))
}

// Busy reports whether the runtime is working on the same object for an earlier call: that sandbox
// or container name is being created or exists already, or the container is being started or
// removed. The caller lists, then tries again.
//
// containerd 1.6 and 2 and CRI-O have no code for this, only these words.
func Busy(err error) bool {
	if err == nil {
		return false
	}
	if code := status.Code(err); code == codes.Canceled || errors.Is(err, context.Canceled) {
		return false
	}
	for _, words := range []string{
		"failed to reserve sandbox name",
		"failed to reserve container name",
		"name is reserved",
		"in starting state",
		"in removing state",
		"another operation in progress",
	} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}
