package cri

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// lacking is the error of a call that the runtime answered without the expected content: the result
// is then unknown; in particular it does not mean that the object is gone.
func lacking(call, object, what string) error {
	return failed(call, object, 0, status.Error(codes.Internal, "the runtime answered without "+what))
}

// whole returns err, or, if that is nil and the answer lacks its content, an error that says so.
func whole(has bool, err error, call, object, what string) error {
	if err != nil || has {
		return err
	}
	return lacking(call, object, what)
}

// named checks that every listed object has its identity. One without it would be taken for
// missing, and would be created a second time.
func named[T interface{ GetId() string }](all []T, call, kind string, has func(T) bool) error {
	for _, one := range all {
		if !has(one) {
			return lacking(call, "", "the metadata of "+kind+" "+short(one.GetId()))
		}
	}
	return nil
}

func hasName(c *rt.Container) bool         { return c.GetMetadata() != nil }
func sandboxHasName(s *rt.PodSandbox) bool { return s.GetMetadata() != nil }
