package cri

import (
	"context"
	"encoding/json"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Image returns a local image, or nil without an error if it is absent.
func (c *Client) Image(ctx context.Context, image *rt.ImageSpec) (*rt.Image, error) {
	r, err := call(ctx, "ImageStatus", image.GetImage(), c.asks("ImageStatus"), c.images.ImageStatus,
		&rt.ImageStatusRequest{Image: image})
	return r.GetImage(), err
}

// PullImage pulls an image and returns the reference for creating containers. auth and pod may be
// nil.
func (c *Client) PullImage(ctx context.Context, image *rt.ImageSpec, auth *rt.AuthConfig, pod *rt.PodSandboxConfig) (ref string, err error) {
	r, err := call(ctx, "PullImage", image.GetImage(), c.Timeouts.Pull, c.images.PullImage,
		&rt.PullImageRequest{Image: image, Auth: auth, SandboxConfig: pod})
	return r.GetImageRef(), whole(r.GetImageRef() != "", err, "PullImage", image.GetImage(), "a reference of the image")
}

// Images lists all images of the runtime, including those that other programs pulled.
func (c *Client) Images(ctx context.Context) ([]*rt.Image, error) {
	r, err := call(ctx, "ListImages", "", c.asks("ListImages"), c.images.ListImages, &rt.ListImagesRequest{})
	return r.GetImages(), err
}

// RemoveImage removes an image with all its names. A missing image is not an error. Containers
// created from it keep running.
func (c *Client) RemoveImage(ctx context.Context, id string) error {
	_, err := call(ctx, "RemoveImage", id, c.changes("RemoveImage", c.Timeouts.Remove), c.images.RemoveImage,
		&rt.RemoveImageRequest{Image: &rt.ImageSpec{Image: id}})
	return unlessGone(err)
}

// ImageDir returns a folder on the file system that holds the images, "" if the runtime does not
// report it.
func (c *Client) ImageDir(ctx context.Context) (string, error) {
	fs, err := c.ImageFS(ctx)
	return fs.GetFsId().GetMountpoint(), err
}

// Info is what runtimes report of their settings, each in its own format; fields that are not
// reported are empty.
type Info struct {
	SandboxImage string   // from which sandboxes are created
	CNIConf      string   // the folder of network configurations
	CNIBin       []string // the folders of network plugins
	CDI          bool     // it gives CDI devices to containers
	CRIO         *CRIOInfo
}

// CRIOInfo are settings that CRI-O reports from 1.33 on.
type CRIOInfo struct {
	PodEvents   bool   // it streams container events
	RuntimePath string // of the default OCI runtime
}

// Info returns what the runtime reports of its settings: containerd all of it but CRIO, CRI-O only
// that and the sandbox image. A containerd before 1.7 has no CDI, and no folders of its specifications; one in
// which it can be turned off says in enableCDI whether it is.
func (c *Client) Info(ctx context.Context) (Info, error) {
	r, err := call(ctx, "Status", "", c.asks("Status"), c.runtime.Status, &rt.StatusRequest{Verbose: true})
	if err != nil {
		return Info{}, err
	}
	return infoOf(r.GetInfo()["config"]), nil
}

// infoOf reads the configuration that a runtime reports.
func infoOf(text string) Info {
	var config struct {
		SandboxImage string `json:"sandboxImage"`
		CNI          struct {
			Conf string   `json:"confDir"`
			Bin  string   `json:"binDir"` // until containerd 2.0
			Bins []string `json:"binDirs"`
		} `json:"cni"`
		CDIDirs   []string `json:"cdiSpecDirs"`
		EnableCDI *bool    `json:"enableCDI"`
		CRIO      *struct {
			EnablePodEvents bool
			DefaultRuntime  string
			Runtimes        map[string]struct{ RuntimePath string }
		} `json:"crio"`
	}
	if json.Unmarshal([]byte(text), &config) != nil {
		return Info{}
	}
	if config.CNI.Bin != "" && len(config.CNI.Bins) == 0 {
		config.CNI.Bins = []string{config.CNI.Bin}
	}
	hasCDI := len(config.CDIDirs) > 0 && (config.EnableCDI == nil || *config.EnableCDI)
	info := Info{SandboxImage: config.SandboxImage, CNIConf: config.CNI.Conf, CNIBin: config.CNI.Bins, CDI: hasCDI}
	if c := config.CRIO; c != nil {
		info.CRIO = &CRIOInfo{PodEvents: c.EnablePodEvents, RuntimePath: c.Runtimes[c.DefaultRuntime].RuntimePath}
	}
	return info
}

// SandboxImage returns the image from which sandboxes are created, "" if the runtime does not
// report it. containerd and CRI-O report it; other runtimes mark the image as pinned.
func (c *Client) SandboxImage(ctx context.Context) (string, error) {
	info, err := c.Info(ctx)
	return info.SandboxImage, err
}
