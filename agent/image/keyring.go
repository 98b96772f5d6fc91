package image

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"monopod/agent/disk"
	"monopod/agent/saidonce"
)

// Keyring has the credentials of the node: those of docker config files, then
// those of plugins. Any goroutine may use it.
type Keyring struct {
	Root    string   // the agent's root dir, searched first
	Home    string   // of the user that the agent runs as; "" is not searched
	Plugins *Plugins // nil: none
	Log     *slog.Logger

	logged saidonce.Errors // of files
}

// lookup returns the credentials for a repository (without tag), in the order in which to try
// them. A nil keyring has none.
func (k *Keyring) lookup(ctx context.Context, repository string) []Auth {
	if k == nil {
		return nil
	}
	found := matching(k.files(), repository)
	for _, a := range k.Plugins.lookup(ctx, repository) {
		if !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	return found
}

// files returns the entries of the first readable file; files are read again for each pull. A
// config.json anywhere wins over a .dockercfg. Unlike a kubelet's, the search leaves out the
// working directory, whose content may be anything, and anyone's.
func (k *Keyring) files() []entry {
	home := func(sub string) []string {
		if k.Home == "" {
			return nil
		}
		return []string{filepath.Join(k.Home, sub)}
	}
	for _, of := range []struct {
		name  string
		dirs  []string
		parse func([]byte) ([]entry, error)
	}{
		{"config.json", slices.Concat([]string{k.Root}, home(".docker"), []string{"/.docker"}), parseConfig},
		{".dockercfg", slices.Concat([]string{k.Root}, home(""), []string{"/"}), parseLegacy},
	} {
		for _, dir := range of.dirs {
			path := filepath.Join(dir, of.name)
			data, err := disk.ReadConfig(path)
			var found []entry
			if err == nil {
				found, err = of.parse(data)
			}
			k.logError(path, err)
			if err == nil {
				return found
			}
		}
	}
	return nil
}

// logError logs the error of a file, once.
func (k *Keyring) logError(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if k.logged.IsNew(path, err) {
		k.Log.Warn("registry credentials cannot be read; trying the next file", "file", path, "err", err)
	}
}
