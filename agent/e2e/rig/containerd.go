package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// containerd is what its versions have in common.
var containerd = kind{name: "containerd", refuses: true, streams: true, pauses: 1, imageBytes: 1 << 20, mirror: writeHosts}

// newContainerd writes the configuration of a containerd of that version.
func newContainerd(dir, version string, network *Network, registry string) (*Runtime, error) {
	bin, shims, err := binaries(version)
	if err != nil {
		return nil, err
	}
	number, err := versionOf(bin)
	if err != nil {
		return nil, err
	}
	config, err := containerdConfig(dir, network).TOML(number)
	if err != nil {
		return nil, err
	}
	crun, err := crunHandler(dir, number)
	if err != nil {
		return nil, err
	}
	path := os.Getenv("PATH")
	if shims != "" {
		path = shims + ":" + path
	}
	file := filepath.Join(dir, "config.toml")
	err = errors.Join(os.WriteFile(file, []byte(config+crun), 0o644), writeHosts(dir, "_default", registry))
	return &Runtime{kind: containerd, hasCrun: crun != "", argv: []string{bin, "-c", file}, env: []string{"PATH=" + path},
		Log: filepath.Join(dir, "containerd.log"), Endpoint: "unix://" + filepath.Join(dir, "containerd.sock")}, err
}

// writeHosts sends the pulls of a host, or of whatever host with "_default", to addr
// over plain http.
func writeHosts(dir, host, addr string) error {
	dir = filepath.Join(dir, "certs.d", host)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("server = \"http://%[1]s\"\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", addr)
	return os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(text), 0o644)
}
