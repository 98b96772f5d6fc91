package cri_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"monopod/cri"
	"monopod/cri/critest"
)

// A containerd whose store is damaged answers like this.
func TestARuntimeWithoutItsCRIPluginIsToldFromOneThatIsDown(t *testing.T) {
	r := critest.New(t)
	r.Fault(critest.On("Version").Fail(codes.Unimplemented, "unknown service runtime.v1.RuntimeService"))
	_, err := cri.New(r.Conn()).Version(t.Context())
	if err == nil || !strings.Contains(err.Error(), cri.WithoutCRI) || !cri.Unimplemented(err) {
		t.Errorf("the error is %v", err)
	}
}
