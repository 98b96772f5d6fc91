package managed

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// Config is what the configuration of a containerd says, whatever its version. It is written for a
// containerd beside others on the machine: all that it keeps is in Dir.
type Config struct {
	Dir           string
	Socket        string
	Sandbox       string   // the image of sandboxes
	Registries    string   // folders of hosts.toml files, with a colon between
	ConfDir       string   // of CNI
	BinDirs       []string // of CNI plugins; before 2.1 the first counts
	Snapshotter   string
	SystemdCgroup bool
	RestrictOOM   bool // containers get no lower OOM score than containerd has
}

// Here returns a Config with what follows from a folder of this machine, and from the rights of
// this process. former is the file that was written for that folder before; "": none.
func Here(dir, former string) Config {
	return Config{Dir: dir, Snapshotter: snapshotter(dir, snapshotterIn(former)), RestrictOOM: !hasCapability(capSysResource)}
}

var snapshotterLine = regexp.MustCompile(`(?m)^ *snapshotter = "(.*)"$`)

// snapshotterIn returns the snapshotter of a file; "": it has none.
func snapshotterIn(file string) string {
	m := snapshotterLine.FindStringSubmatch(file)
	if m == nil {
		return ""
	}
	return m[1]
}

// dialect is how versions of containerd name their settings.
type dialect struct {
	major, minor int // the first of these versions
	template     string
	bins         string // the setting of the folders of CNI plugins
}

// dialects has all that differs between versions, the newest first.
var dialects = []dialect{
	{2, 1, version3, `bin_dirs = [{{range $k, $d := .BinDirs}}{{if $k}}, {{end}}{{printf "%q" $d}}{{end}}]`},
	{2, 0, version3, `bin_dir = {{printf "%q" (index .BinDirs 0)}}`},
	{1, 6, version2, `bin_dir = {{printf "%q" (index .BinDirs 0)}}`},
}

const version2 = `version = 2
root = "{{.Dir}}/root"
state = "{{.Dir}}/state"
[debug]
  level = "warn"
[grpc]
  address = "{{.Socket}}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{{.Dir}}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{{.Sandbox}}"
  restrict_oom_score_adj = {{.RestrictOOM}}
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
  BINS
  conf_dir = "{{.ConfDir}}"
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "{{.Registries}}"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "{{.Snapshotter}}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  Root = "{{.Dir}}/runc"
  SystemdCgroup = {{.SystemdCgroup}}
`

const version3 = `version = 3
imports = []
root = "{{.Dir}}/root"
state = "{{.Dir}}/state"
[debug]
  level = "warn"
[grpc]
  address = "{{.Socket}}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{{.Dir}}/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{{.Snapshotter}}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{{.Sandbox}}"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "{{.Registries}}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {{.RestrictOOM}}
  netns_mounts_under_state_dir = true
[plugins."io.containerd.cri.v1.runtime".cni]
  BINS
  conf_dir = "{{.ConfDir}}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  Root = "{{.Dir}}/runc"
  SystemdCgroup = {{.SystemdCgroup}}
`

// dialectOf returns the dialect of a version.
func dialectOf(v Version) (dialect, error) {
	for _, d := range dialects {
		if v.atLeast(d.major, d.minor) {
			return d, nil
		}
	}
	return dialect{}, fmt.Errorf("containerd %s is too old: install 1.6 or newer", v)
}

// TOML returns the configuration as a file for that version.
func (c Config) TOML(v Version) (string, error) {
	d, err := dialectOf(v)
	if err != nil {
		return "", err
	}
	t, err := template.New("config.toml").Parse(strings.Replace(d.template, "BINS", d.bins, 1))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = t.Execute(&out, c)
	return out.String(), err
}
