package image

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/disk"
	"monopod/manifests/decode"
)

// versions of the two APIs: of a credential provider's configuration, and of its requests and
// answers.
const (
	configGroup   = "kubelet.config.k8s.io/"
	providerGroup = "credentialprovider.kubelet.k8s.io/"
)

// pluginFile is a CredentialProviderConfig.
type pluginFile struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Providers  []pluginSettings `json:"providers"`
}

// pluginSettings is one provider of a CredentialProviderConfig.
type pluginSettings struct {
	Name                 string           `json:"name"`
	MatchImages          []string         `json:"matchImages"`
	DefaultCacheDuration *metav1.Duration `json:"defaultCacheDuration"`
	APIVersion           string           `json:"apiVersion"`
	Args                 []string         `json:"args"`
	Env                  []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	TokenAttributes *struct {
		Audience            string   `json:"serviceAccountTokenAudience"`
		CacheType           string   `json:"cacheType"`
		RequireAccount      *bool    `json:"requireServiceAccount"`
		RequiredAnnotations []string `json:"requiredServiceAccountAnnotationKeys"`
		OptionalAnnotations []string `json:"optionalServiceAccountAnnotationKeys"`
	} `json:"tokenAttributes"`
}

// LoadPlugins reads the credential provider plugins from a file of a kubelet's
// --image-credential-provider-config or a folder of such, whose programs are in bin. Without path
// there are none. Its errors are one sentence for the author of the file.
func LoadPlugins(path, bin string, log *slog.Logger) (*Plugins, error) {
	switch {
	case path == "" && bin == "":
		return nil, nil
	case path == "" || bin == "":
		return nil, errors.New("credential providers need both their configuration and the folder of their programs: give --image-credential-provider-config and --image-credential-provider-bin-dir")
	}
	if fi, err := os.Stat(bin); err != nil || !fi.IsDir() {
		return nil, fmt.Errorf("credential providers: %s is no folder of programs", bin)
	}
	paths, err := pluginFiles(path)
	if err != nil {
		return nil, fmt.Errorf("credential providers: %w", err)
	}
	all := &Plugins{}
	for _, path := range paths {
		data, err := disk.ReadConfig(path)
		if err != nil {
			return nil, fmt.Errorf("credential providers: %w", err)
		}
		var file pluginFile
		if wrong := decode.ReadPrivate(path, data, &file); len(wrong) > 0 {
			return nil, fmt.Errorf("credential providers: %w", wrong[0])
		}
		if err := all.add(&file, bin, log); err != nil {
			return nil, fmt.Errorf("credential providers: %s: %w", path, err)
		}
	}
	if len(all.plugins) == 0 {
		return nil, fmt.Errorf("credential providers: %s names none", path)
	}
	return all, nil
}

// pluginFiles returns the file itself, or those of a folder in order.
func pluginFiles(path string) ([]string, error) {
	fi, err := os.Stat(path)
	if err != nil || !fi.IsDir() {
		return []string{path}, err
	}
	dir, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range dir {
		if !e.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(e.Name())) {
			found = append(found, filepath.Join(path, e.Name()))
		}
	}
	return found, nil
}

func (all *Plugins) add(file *pluginFile, bin string, log *slog.Logger) error {
	if file.Kind != "CredentialProviderConfig" || !isVersion(file.APIVersion, configGroup) {
		return fmt.Errorf("it is no CredentialProviderConfig of %sv1, v1beta1 or v1alpha1", configGroup)
	}
	for k := range file.Providers {
		s := &file.Providers[k]
		if slices.ContainsFunc(all.plugins, func(p *plugin) bool { return p.name == s.Name }) {
			return fmt.Errorf("providers[%d]: a provider of this name is there already", k)
		}
		p, err := s.plugin(bin, log)
		if err != nil {
			return fmt.Errorf("providers[%d]: %w", k, err)
		}
		// A provider that needs a service account's token gets none here.
		if t := s.TokenAttributes; t != nil && t.RequireAccount != nil && *t.RequireAccount {
			log.Warn("a credential provider wants service accounts, which there are none of, and is not used", "provider", s.Name)
			p.patterns = nil
		}
		all.plugins = append(all.plugins, p)
	}
	return nil
}

// plugin checks the settings of one provider.
func (s *pluginSettings) plugin(bin string, log *slog.Logger) (*plugin, error) {
	switch {
	case s.Name == "" || s.Name == "." || s.Name == ".." || strings.ContainsAny(s.Name, "/ "):
		return nil, errors.New("name: must be that of a program in the folder")
	case len(s.MatchImages) == 0:
		return nil, errors.New("matchImages: must not be empty")
	case s.DefaultCacheDuration == nil || s.DefaultCacheDuration.Duration < 0:
		return nil, errors.New("defaultCacheDuration: must be given and not be negative")
	case !isVersion(s.APIVersion, providerGroup):
		return nil, fmt.Errorf("apiVersion: choose %sv1, v1beta1 or v1alpha1", providerGroup)
	}
	p := &plugin{
		name: s.Name, path: filepath.Join(bin, s.Name), args: s.Args, env: os.Environ(), apiVersion: s.APIVersion,
		cacheFor: s.DefaultCacheDuration.Duration, timeout: pluginTimeout, log: log, flights: map[string]*flight{}, cache: map[string]cached{},
	}
	for _, e := range s.Env {
		p.env = append(p.env, e.Name+"="+e.Value)
	}
	for k, m := range s.MatchImages {
		match, err := parsePattern(m)
		if err != nil {
			return nil, fmt.Errorf("matchImages[%d]: %w", k, err)
		}
		p.patterns = append(p.patterns, match)
	}
	return p, nil
}

func isVersion(v, group string) bool {
	version, ok := strings.CutPrefix(v, group)
	return ok && slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, version)
}

// pluginTimeout is how long a plugin may take.
const pluginTimeout = time.Minute
