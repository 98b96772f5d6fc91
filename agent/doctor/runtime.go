package doctor

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/managed"
	"monopod/cri"
	"monopod/manifests/shell"
)

// runtime checks whether the runtime answers, and is ready.
func runtime(ctx context.Context, m *Machine) []Finding {
	if m.silent != nil {
		return []Finding{m.silence()}
	}
	its := m.version.RuntimeName + " " + m.version.RuntimeVersion + " at " + m.Runtime.Endpoint()
	lacks := m.lacks(ctx, rt.RuntimeReady)
	switch {
	case lacks != "":
		return []Finding{fail(m.lookAt(), "%s is not ready: %s", its, lacks)}
	case m.Config.ManagedRuntime:
		return []Finding{ok("%s, started by monopod", its)}
	}
	return append([]Finding{ok("%s", its)}, crioSettings(ctx, m)...)
}

// silence finds why the runtime does not answer.
func (m *Machine) silence() Finding {
	switch {
	case m.Config.ManagedRuntime:
		return m.managedSilence()
	case grpcstatus.Code(errors.Unwrap(m.silent)) == codes.Unimplemented || grpcstatus.Code(m.silent) == codes.Unimplemented:
		return fail(m.remedy(func(r remedies) string { return r.speak }), "%s does not speak CRI v1: %s", m.Runtime.Endpoint(), cri.WithoutCRI)
	case m.noSocket():
		return fail(m.start(), "no runtime: there is no socket at %s", strings.Join(m.Endpoints, " or "))
	}
	return fail(m.lookAt(), "the runtime does not answer: %v", m.silent)
}

// managedSilence finds why the runtime that the agent starts does not answer.
func (m *Machine) managedSilence() Finding {
	switch {
	case m.NoStart != nil:
		return fail("", "the managed runtime cannot be started: %v", m.NoStart)
	case !m.Up:
		return warn("start monopod", "the managed runtime does not run, nor does monopod")
	}
	return fail(m.lookAt(), "the managed runtime does not answer: %v", m.silent)
}

// lookAt returns what to do with a runtime that is there and does not work.
func (m *Machine) lookAt() string {
	if m.Config.ManagedRuntime {
		return "look at monopod's log, and at that of containerd: " + managed.LogOf(m.Config.Root)
	}
	return m.remedy(func(r remedies) string { return m.service("restart", r.unit) })
}

// lacks returns why the runtime says that a condition of it is false; "": it does not say so.
func (m *Machine) lacks(ctx context.Context, condition string) string {
	st, err := m.Runtime.Status(ctx)
	if err != nil {
		return ""
	}
	for _, c := range st.Status.Conditions {
		if c.Type == condition && !c.Status {
			return cmp.Or(strings.TrimSpace(c.Message), c.Reason, "it does not say why")
		}
	}
	return ""
}

// noSocket reports whether none of the runtime's sockets exists.
func (m *Machine) noSocket() bool {
	return !slices.ContainsFunc(m.Endpoints, isThere)
}

// network checks whether pods with a network of their own can start.
func network(ctx context.Context, m *Machine) (found []Finding) {
	if lacks := m.lacks(ctx, rt.NetworkReady); lacks != "" {
		found = append(found, warn(m.networkRemedy(ctx), "pods without hostNetwork wait: %s", lacks))
	}
	return orOK(append(found, lostAddresses(m)...), "pods get addresses of their own")
}

// networkRemedy returns how the runtime gets a network for pods.
func (m *Machine) networkRemedy(ctx context.Context) string {
	if m.Config.ManagedRuntime {
		return "apt-get install containernetworking-plugins, and start monopod again"
	}
	conf, bin := m.networkFolders(ctx)
	return "put a CNI configuration into " + conf + " and the plugins that it names into " + bin
}

// networkFolders returns where the runtime looks for CNI configurations and plugins. CRI-O does not
// report that.
func (m *Machine) networkFolders(ctx context.Context) (conf, bin string) {
	info, err := m.Runtime.Info(ctx)
	switch {
	case err == nil && info.CNIConf != "":
		return info.CNIConf, strings.Join(info.CNIBin, " or ")
	case m.runtimeName() == cri.CRIO:
		return "CRI-O's network_dir (/etc/cni/net.d, unless a file says otherwise)", "one of its plugin_dirs (/opt/cni/bin, likewise)"
	}
	return "/etc/cni/net.d", "/opt/cni/bin"
}

// lostAddresses finds the addresses that the CNI plugin host-local never assigns again: it syncs
// none, and a power cut left their files without the sandbox's id.
func lostAddresses(m *Machine) (found []Finding) {
	files, _ := filepath.Glob(m.file("var/lib/cni/networks/*/*"))
	for _, file := range files {
		_, notOne := netip.ParseAddr(filepath.Base(file))
		if info, err := os.Lstat(file); notOne == nil && err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			found = append(found, warn(`remove it, and put "dataDir": "/run/cni/networks" beside "type": "host-local" in the CNI configuration`,
				"the address is lost, as a power cut may leave it: %s is empty", file))
		}
	}
	return found
}

// pauseImage checks whether sandboxes can be made without a network.
func pauseImage(ctx context.Context, m *Machine) []Finding {
	info, err := m.Runtime.Info(ctx)
	if err != nil {
		return nil
	}
	ref := info.SandboxImage
	if ref == "" {
		return pinned(ctx, m.Runtime)
	}
	image, err := m.Runtime.Image(ctx, &rt.ImageSpec{Image: ref})
	switch {
	case err != nil:
		return []Finding{warn("", "the image of sandboxes cannot be looked at: %v", err)}
	case image == nil:
		return []Finding{warn("crictl pull "+shell.Word(ref)+", or offline: "+m.remedy(func(r remedies) string { return r.load }),
			"%s is not here: the first pod waits until it can be pulled", ref)}
	}
	return []Finding{ok("%s is here", ref)}
}

// pinned looks for the image of sandboxes if the runtime does not name it.
func pinned(ctx context.Context, c *cri.Client) []Finding {
	all, err := c.Images(ctx)
	if err != nil {
		return nil
	}
	for _, image := range all {
		if image.Pinned && len(image.RepoTags) > 0 {
			return []Finding{ok("%s is here", image.RepoTags[0])}
		}
	}
	return []Finding{warn("start a pod while there is a network", "no image is pinned: the one of sandboxes may have to be pulled")}
}

// cgroupDriver checks whether the agent and the runtime agree on who makes cgroups.
func cgroupDriver(ctx context.Context, m *Machine) []Finding {
	mine := m.Config.CgroupDriver
	if mine == "none" {
		return []Finding{warn("", "none: pods have no cgroups of their own, and so no limits as a whole")}
	}
	if m.silent != nil {
		return nil
	}
	r, err := m.Runtime.RuntimeConfig(ctx)
	if err != nil || r.GetLinux() == nil {
		return []Finding{warn("name the runtime's with --cgroup-driver", "the runtime does not say its own; monopod takes %s", m.fallback())}
	}
	its := strings.ToLower(r.Linux.CgroupDriver.String())
	if mine != "auto" && mine != its {
		return []Finding{fail("leave out --cgroup-driver", "monopod has %s and the runtime %s: no pod can start", mine, its)}
	}
	if comm, _ := os.ReadFile(m.file("proc/1/comm")); its == "cgroupfs" && strings.TrimSpace(string(comm)) == "systemd" && m.unified() {
		return []Finding{warn(m.remedy(func(r remedies) string { return r.systemd })+"; drain the node's pods and restart both",
			"cgroupfs, while systemd manages the cgroups of this machine: two that write to one tree")}
	}
	return []Finding{ok("%s, as the runtime", its)}
}

func (m *Machine) fallback() string {
	if m.Config.CgroupDriver != "auto" {
		return m.Config.CgroupDriver
	}
	if m.Config.FallbackDriver != "" {
		return m.Config.FallbackDriver
	}
	return "cgroupfs"
}
