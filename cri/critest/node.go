package critest

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// SetCondition sets one of the runtime's conditions, such as rt.NetworkReady;
// both it and rt.RuntimeReady are true at first.
func (r *Runtime) SetCondition(kind string, ok bool, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conditions[kind] = &rt.RuntimeCondition{Type: kind, Status: ok, Reason: reason, Message: message}
	r.change()
}

// SetCgroupDriver sets what RuntimeConfig tells; cgroupfs at first.
func (r *Runtime) SetCgroupDriver(driver rt.CgroupDriver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cgroupDriver = driver
}

// Feature is something that Status tells a runtime can do. At first it can do all.
type Feature int

const (
	RecursiveReadOnly Feature = iota
	UserNamespaces
	SupplementalGroupsPolicy
)

// Lacks makes Status tell that the runtime cannot do something.
func (r *Runtime) Lacks(features ...Feature) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range features {
		r.lacks[f] = true
	}
}

func (s *runtimeService) Version(context.Context, *rt.VersionRequest) (*rt.VersionResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return &rt.VersionResponse{Version: "0.1.0", RuntimeName: s.r.name, RuntimeVersion: s.r.version, RuntimeApiVersion: "v1"}, nil
}

func (s *runtimeService) Status(_ context.Context, q *rt.StatusRequest) (*rt.StatusResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	response := &rt.StatusResponse{Status: &rt.RuntimeStatus{Conditions: []*rt.RuntimeCondition{
		proto.CloneOf(s.r.conditions[rt.RuntimeReady]),
		proto.CloneOf(s.r.conditions[rt.NetworkReady]),
	}}}
	if q.Verbose {
		cdi := `,"cdiSpecDirs":["/etc/cdi"]`
		if s.r.containerd16 {
			cdi = ""
		}
		config := fmt.Sprintf(`{"sandboxImage":%q,"cni":{"confDir":"/etc/critest.d","binDirs":["/opt/critest"]}%s}`, s.r.sandboxImage, cdi)
		if s.r.name == "cri-o" {
			config = fmt.Sprintf(`{"sandboxImage":%q,"crio":{"EnablePodEvents":%v,"DefaultRuntime":"oci","Runtimes":{"oci":{"RuntimePath":%q}}}}`,
				s.r.sandboxImage, s.r.podEvents, s.r.ociRuntime)
		}
		response.Info = map[string]string{"config": config}
	}
	if s.r.containerd16 {
		return response, nil
	}
	response.Features = &rt.RuntimeFeatures{SupplementalGroupsPolicy: !s.r.lacks[SupplementalGroupsPolicy]}
	for _, name := range []string{"", "runc"} {
		response.RuntimeHandlers = append(response.RuntimeHandlers, &rt.RuntimeHandler{Name: name, Features: &rt.RuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: !s.r.lacks[RecursiveReadOnly],
			UserNamespaces:          !s.r.lacks[UserNamespaces],
		}})
	}
	return response, nil
}

func (s *runtimeService) RuntimeConfig(context.Context, *rt.RuntimeConfigRequest) (*rt.RuntimeConfigResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.r.containerd16 {
		return nil, status.Error(codes.Unimplemented, "unknown method RuntimeConfig for service runtime.v1.RuntimeService")
	}
	return &rt.RuntimeConfigResponse{Linux: &rt.LinuxRuntimeConfiguration{CgroupDriver: s.r.cgroupDriver}}, nil
}

func (s *runtimeService) UpdateRuntimeConfig(context.Context, *rt.UpdateRuntimeConfigRequest) (*rt.UpdateRuntimeConfigResponse, error) {
	return &rt.UpdateRuntimeConfigResponse{}, nil
}
