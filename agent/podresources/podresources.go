// Package podresources tells clients of a kubelet what containers have for themselves.
package podresources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	v1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"monopod/agent/socket"
)

// maxConns is how many connections are served at a time. Others wait.
const maxConns = 64

// Limits of each connection. A request has no more than two names.
const (
	maxStreams     = 16
	maxRequest     = 4 << 10 // and its headers
	connectTimeout = 5 * time.Second
	idleTimeout    = time.Minute
)

// Config is what is served and where. Any goroutine calls its functions, which must not wait for a
// disk or a runtime.
type Config struct {
	Path        string                                                // of the socket
	Active      func() []*v1.Pod                                      // the pods on the node that have not ended
	Pod         func(key string) (*v1.Pod, bool)                      // any pod, by "namespace/name"
	CPUs        func(uid, container string) []int                     // that a container has for itself
	Allocatable func() []int                                          // the CPUs that containers can have for themselves
	Devices     func(p *v1.Pod, container string) map[string][]string // that a container has of resources of the settings, by resource
	AllDevices  func() map[string][]string                            // that containers can have
	Count       func(method string, isRefused bool)                   // called for each request; method is list, get or get_allocatable
	Log         *slog.Logger
}

// Server serves the API v1.PodResourcesLister of a kubelet: CPUs and devices, no memory. Run must
// be called to release what Listen bound. With nil nothing is served, and no method does anything.
type Server struct {
	api.UnimplementedPodResourcesListerServer // what newer clients may call

	config Config
	socket *socket.Socket
	grpc   *grpc.Server
}

// Listen makes the folder of the socket and binds it. No other agent may have the same path: a client
// that has the folder may leave anything there, so what is there is removed, also a socket that a
// process answers on.
func Listen(c Config) (*Server, error) {
	if err := openFolder(filepath.Dir(c.Path)); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", c.Path, err)
	}
	if err := clearPath(c.Path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", c.Path, err)
	}
	at, err := socket.Listen(c.Path)
	if err != nil {
		return nil, err
	}
	g := &guard{count: c.Count, log: c.Log}
	s := &Server{config: c, socket: at, grpc: grpc.NewServer(
		grpc.UnaryInterceptor(g.answer),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxHeaderListSize(maxRequest), grpc.ConnectionTimeout(connectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout}),
		grpc.WaitForHandlers(true))}
	api.RegisterPodResourcesListerServer(s.grpc, s)
	return s, nil
}

// openFolder makes the folder, with a kubelet's mode.
func openFolder(dir string) error {
	const mode = 0o750
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// clearPath removes what is at the path, and follows no link. It moves a folder with something in it
// aside within the same folder: a client could fill it faster than it is emptied.
func clearPath(path string) error {
	err := os.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.Rename(path, path+"."+strconv.FormatInt(time.Now().UnixNano(), 36))
}

// Run serves until ctx ends, and removes the socket. It returns an error only if serving ended by
// itself.
func (s *Server) Run(ctx context.Context) error {
	if s == nil {
		return nil
	}
	defer s.socket.Remove()
	stop := context.AfterFunc(ctx, s.grpc.Stop)
	defer stop()
	err := s.grpc.Serve(netutil.LimitListener(s.socket, maxConns))
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// List returns what the containers of all active pods have.
func (s *Server) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	all := &api.ListPodResourcesResponse{}
	for _, p := range s.config.Active() {
		all.PodResources = append(all.PodResources, s.of(p))
	}
	return all, nil
}

// Get returns what the containers of one pod have. Its error is a kubelet's.
func (s *Server) Get(_ context.Context, q *api.GetPodResourcesRequest) (*api.GetPodResourcesResponse, error) {
	p, isKnown := s.config.Pod(q.GetPodNamespace() + "/" + q.GetPodName())
	if !isKnown {
		return nil, fmt.Errorf("pod %s in namespace %s not found", q.GetPodName(), q.GetPodNamespace())
	}
	return &api.GetPodResourcesResponse{PodResources: s.of(p)}, nil
}

// GetAllocatableResources returns what containers can have.
func (s *Server) GetAllocatableResources(context.Context, *api.AllocatableResourcesRequest) (*api.AllocatableResourcesResponse, error) {
	return &api.AllocatableResourcesResponse{CpuIds: numbers(s.config.Allocatable()), Devices: devices(s.config.AllDevices())}, nil
}

// of returns what the containers of a pod have: the sidecars first, then the others. Init containers
// that end are left out, as by a kubelet.
func (s *Server) of(p *v1.Pod) *api.PodResources {
	all := &api.PodResources{Name: p.Name, Namespace: p.Namespace}
	for _, c := range slices.Concat(sidecars(p), p.Spec.Containers) {
		own := s.config.CPUs(string(p.UID), c.Name)
		has := devices(s.config.Devices(p, c.Name))
		all.Containers = append(all.Containers, &api.ContainerResources{Name: c.Name, CpuIds: numbers(own), Devices: has})
	}
	return all
}

func sidecars(p *v1.Pod) []v1.Container {
	ends := func(c v1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != v1.ContainerRestartPolicyAlways
	}
	return slices.DeleteFunc(slices.Clone(p.Spec.InitContainers), ends)
}

func numbers(cpus []int) []int64 {
	var all []int64
	for _, id := range cpus {
		all = append(all, int64(id))
	}
	return all
}

// devices returns an entry for each device, as a kubelet has them without a topology.
func devices(byResource map[string][]string) (all []*api.ContainerDevices) {
	for _, resource := range slices.Sorted(maps.Keys(byResource)) {
		for _, id := range byResource[resource] {
			all = append(all, &api.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}})
		}
	}
	return all
}
