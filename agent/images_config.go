package agent

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"monopod/agent/image"
	"monopod/agent/metrics"
	"monopod/agent/status"
	"monopod/cri"
)

// ImageConfig is the settings of pulls and of the removal of images. Zero values
// mean the default given.
type ImageConfig struct {
	// QPS bounds how many pulls are begun per second and Burst how many of them
	// at once, default 10; those over the limit wait. Default: no limit.
	QPS, Burst int

	// CredentialProviders is a CredentialProviderConfig, or a folder of such, and
	// CredentialBin the folder of the programs that it names.
	CredentialProviders, CredentialBin string

	Collect image.Limits
}

// complete returns the settings with defaults filled in, or a sentence about
// the first that cannot be.
func (c ImageConfig) complete() (ImageConfig, error) {
	l := c.Collect.Complete()
	c.Collect, c.Burst = l, cmp.Or(c.Burst, pullBurst)
	switch {
	case c.QPS < 0 || c.Burst < 0:
		return c, fmt.Errorf("limits of image pulls must not be negative")
	case l.High > 100 || l.Low < 0 || l.Low >= l.High:
		return c, fmt.Errorf("images cannot be collected from %d %% of the disk down to %d %%: the first must be higher, both from 0 to 100", l.High, l.Low)
	case l.MinAge < 0 || l.MaxAge < 0 || l.Every < 0:
		return c, fmt.Errorf("ages of images must not be negative")
	case l.MaxAge > 0 && l.MaxAge <= l.MinAge:
		return c, fmt.Errorf("images that are to go after %s cannot have to stay for %s", l.MaxAge, l.MinAge)
	}
	return c, nil
}

// pullBurst is a kubelet's registryBurst.
const pullBurst = 10

func (c Config) puller(k *image.Keyring, m *metrics.Metrics) image.Config {
	return image.Config{Parallel: c.ImagePulls, QPS: c.Images.QPS, Burst: c.Images.Burst, Keyring: k, Pulled: m.Pulled}
}

// keyring returns the credentials of the node.
func (c Config) keyring() (*image.Keyring, error) {
	plugins, err := image.LoadPlugins(c.Images.CredentialProviders, c.Images.CredentialBin, c.Log)
	if err != nil {
		return nil, err
	}
	return &image.Keyring{Root: c.Root, Home: os.Getenv("HOME"), Plugins: plugins, Log: c.Log}, nil
}

// collectorTimeout bounds one answer about the images.
const collectorTimeout = 20 * time.Second

func (c Config) collector(r *cri.Client, needs *imageNeeds, m *metrics.Metrics) image.CollectorConfig {
	return image.CollectorConfig{
		CRI: r, Limits: c.Images.Collect, Needs: needs.all, History: needs.root.path("images.json"),
		WriteFile: status.WriteFile, Collected: m.Collected, Log: c.Log,
	}
}
