package agent

import (
	_ "github.com/containerd/cgroups/v3"
	_ "github.com/distribution/reference"
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/google/go-containerregistry/pkg/crane"
	_ "github.com/google/go-containerregistry/pkg/registry"
	_ "github.com/urfave/cli/v2"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "google.golang.org/grpc"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1"
	_ "sigs.k8s.io/json"
	_ "sigs.k8s.io/yaml"
)
