package agent

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// DefaultListen is where the read-only endpoint listens unless it is set.
const DefaultListen = "127.0.0.1:10255"

// configRow documents a field of the file of settings.
type configRow struct {
	name     string // as in the file; a dot leads into an object
	fallback string // what counts if it is not given, as YAML
	about    string // lines
}

// configRows documents the file of settings, in order.
func configRows() []configRow { return slices.Concat(agentRows(), podRows(), imageRows(), logRows()) }

// agentRows are about the agent itself, and who may ask it.
func agentRows() []configRow {
	return []configRow{
		{"staticPodPath", `""`, "Folder of manifests, or one file. It must be given here or with --manifests.\nHere and below relative paths are relative to this file."},
		{"nodeName", `""`, "What pods get as a suffix; \"\" is the host's name."},
		{"podNameSuffix", "true", "Whether pods are called <name>-<node>, as with a kubelet. (ours)"},
		{"nodeLabels", "{}", "Labels that pods can select besides the usual ones. (ours)"},
		{"fieldValidation", "Strict", "Unknown and duplicate fields of manifests: Strict refuses, Warn, Ignore. (ours)"},
		{"containerRuntimeEndpoint", `""`, "The CRI socket, unix:///path; \"\" is containerd's or CRI-O's, whichever is there."},
		{"runtimeClasses", "{}", "The runtime's handlers by the runtimeClassName that stands for them: {gvisor: runsc}. (ours)"},
		{"root", "/var/lib/monopod", "Folder for volumes, checkpoints and status. (ours)"},
		{"podLogsDir", defaultPodLogs, "Folder for the containers' logs."},
		{"listen", DefaultListen, "TCP address of the read-only endpoint; \"\" is none. One that is not loopback needs a certificate,\nand clientCAFile or tokenFile. (ours)"},
		{"socket", "/run/monopod.sock", "Unix socket that the other commands use. (ours)"},

		{"tlsCertFile", `""`, "Certificate for that address, PEM; with one it speaks TLS only. This file, and those below, are\nread again when they change."},
		{"tlsPrivateKeyFile", `""`, "Its private key."},
		{"tlsCipherSuites", "[]", "Ciphers for TLS 1.2 by Go's names; without any Go's."},
		{"tlsMinVersion", "VersionTLS12", "VersionTLS12 or VersionTLS13."},
		{"authentication.x509.clientCAFile", `""`, "Who comes with a client certificate of one of these CAs may ask."},
		{"tokenFile", `""`, "Who says one of the bearer tokens in this file, one a line, may ask, too. (ours)"},
		{"logLevel", "info", "The least that is logged: debug, info, warn or error. (ours)"},
	}
}

// podRows are about what pods get, and how many there may be.
func podRows() []configRow {
	return []configRow{
		{"resolvConf", "/etc/resolv.conf", "Where pods get the machine's name servers from; with \"\" they ask this machine itself."},
		{"clusterDNS", "[]", "Name servers of pods with dnsPolicy ClusterFirst; without any they get the machine's."},
		{"clusterDomain", `""`, "Domain whose names such pods find without it."},

		{"cgroupDriver", "auto", "auto and none are as with --cgroup-driver; cgroupfs and systemd count, as with a kubelet,\nonly where the runtime does not say which is its own. --cgroup-driver decides."},
		{"cgroupRoot", "/", "The cgroup that holds kubepods; it must exist."},
		{"cgroupsPerQOS", "true", "false is cgroupDriver none: pods get no cgroups."},
		{"enforceNodeAllocatable", "[pods]", "Whether all pods together are held to what is not reserved: [pods], or [] for no."},
		{"systemReserved", "{}", "What pods do not get: cpu, memory, ephemeral-storage, pid."},
		{"kubeReserved", "{}", "The same again; both are summed."},
		{"evictionHard", "{}", "memory.available and nodefs.available are kept from pods when they are admitted, as amounts\nor as percentages. Nothing is evicted, hence nothing is kept unless it is given. With less than\nthis (unless given: memory 100Mi, nodefs 10%, imagefs 15%, inodes 5%) the node reports pressure."},
		{"maxPods", "110", "How many pods the node holds."},
		{"podsPerCore", "0", "Bounds them by the number of cores too; 0 does not."},
		{"podPidsLimit", "-1", "Processes and threads of each pod; below 1 there is no limit."},
		{"cpuCFSQuota", "true", "Whether cpu limits are enforced."},
		{"cpuCFSQuotaPeriod", "100ms", "In what periods they are, 1ms to 1s."},
		{"singleProcessOOMKill", "false", "Out of memory, kill one process and not the container (cgroup v2)."},
		{"failSwapOn", "false", "Whether to refuse to start on a machine with swap. Containers get none either way."},

		{"seccompDefault", "false", "Whether containers that ask for nothing get the runtime's seccomp profile."},
		{"allowedUnsafeSysctls", "[]", "Kernel settings that pods may change beyond the safe ones: names, or prefixes that end in *."},

		{"crashLoopBackOff.firstContainerRestartPeriod", "10s", "How long a container that crashed again waits, the second time, 100ms to 5m. (ours)\nA pod's annotation monopod.backoff-first wins."},
		{"crashLoopBackOff.maxContainerRestartPeriod", "5m0s", "The wait doubles up to this, 1s to 5m. A pod's annotation monopod.backoff-max wins."},
	}
}

func imageRows() []configRow {
	return []configRow{
		{"serializeImagePulls", "false", "true pulls one image at a time; false without maxParallelImagePulls as many as are wanted."},
		{"maxParallelImagePulls", "4", "How many images are pulled at a time."},
		{"registryPullQPS", "0", "How many pulls are begun per second; others wait for their turn. 0 is no limit."},
		{"registryBurst", "10", "How many of them may begin at once."},
		{"imageGCHighThresholdPercent", "85", "How full the disk of the images is when those that nobody uses begin to go; 100 is never.\nNo image goes that a manifest names."},
		{"imageGCLowThresholdPercent", "80", "How full it may still be when that ends."},
		{"imageMinimumGCAge", "2m0s", "An image that has come less long ago stays."},
		{"imageMaximumGCAge", "0s", "An image unused for longer goes even if there is room; 0s is never."},
	}
}

func logRows() []configRow {
	return []configRow{
		{"containerLogMaxSize", "10Mi", "From what size on the log of a running container is rotated; a negative one: never."},
		{"containerLogMaxFiles", "5", "How many logs of a container there are at most, the one it writes to included; at least 2.\nThe newest former one is kept as it is, older ones compressed."},
		{"containerLogMonitorInterval", "10s", "How long after a look at all logs the next is, 1s to 1h: a log grows beyond its size by\nwhat is written meanwhile."},
		{"containerLogMaxWorkers", "1", "How many logs are rotated at a time."},
		{"deadContainersPerContainer", "1", "How many dead ones of each container are kept, with their logs; at least 1, by which\nits pod's status goes. (ours)"},
	}
}

// PrintConfigDefaults writes a file of settings in which each has its default,
// and says what each means.
func PrintConfigDefaults(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Settings of monopod, each with what counts where it is not given; `monopod run --config FILE`.\n" +
		"# Fields are named and mean as in KubeletConfiguration but those marked (ours). Flags win over the file.\n" +
		"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
	var in []string // objects
	for _, row := range configRows() {
		path := strings.Split(row.name, ".")
		objects, name := path[:len(path)-1], path[len(path)-1]
		b.WriteString("\n")
		for k, object := range objects {
			if k >= len(in) || in[k] != object {
				fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", k), object)
			}
		}
		in = objects
		indent := strings.Repeat("  ", len(objects))
		for line := range strings.Lines(row.about) {
			fmt.Fprintf(&b, "%s# %s\n", indent, strings.TrimRight(line, "\n"))
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, name, row.fallback)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
