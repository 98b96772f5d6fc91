package config

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/cpus"
	"monopod/manifests"
	"monopod/manifests/signature"
)

// row is a setting: its name, its meaning, and its value's place.
type row struct {
	name  string // in the file; a dot leads into an object. "": only the flag has it
	flag  string // wins over the file; "": none
	when  when   // when a new value takes effect
	cell         // its type, default and check, and the field of a Config
	about string // lines
}

// when is when a value takes effect that is read while monopod runs.
type when bool

const (
	live    when = true  // at once
	restart when = false // after monopod starts again
)

// ever is the longest possible age of an image.
const ever = 100 * 365 * 24 * time.Hour

// defaultHealthz is the address of healthzPort.
const defaultHealthz = "127.0.0.1"

// rows is the table of the settings, in the order of the file, bound to c.
func rows(c *Config) []row { return slices.Concat(agentRows(c), podRows(c), imageRows(c), logRows(c)) }

// agentRows are about the agent itself, and its access control.
func agentRows(c *Config) []row {
	return []row{
		{"staticPodPath", "manifests", restart, folders(&c.Manifests), "Folder of manifests, or one file, or a list of them, of which later ones win: see docs/manifests.md.\nIt, or staticPodURL, must be given here or with a flag. Here and below relative paths are relative to\nthis file."},
		{"removalSettle", "", restart, duration(&c.RemovalSettle, 30*time.Second, 200*time.Millisecond, time.Hour), "How long a folder of manifests that was made again, or is another one now, must have got no new file\nbefore a pod that is missing in it is removed, 200ms to 1h. In one that stays it is 200ms. (ours)"},
		{"staticPodURL", "manifest-url", restart, unquoted(text(&c.ManifestURL, "", manifests.CheckURL)), "URL that gives manifests, too; the folder's win. {node} in its path or query is the node's name. Only a\ncomplete answer without error removes pods; what came last counts on while there is none, over restarts too."},
		{"staticPodURLHeader", "manifest-url-header", restart, headers(&c.ManifestURLHeader), "Headers of requests to it: {X-Node: [edge7]}. Redirects to other hosts do not get them."},
		{"httpCheckFrequency", "", restart, duration(&c.ManifestURLEvery, 20*time.Second, time.Second, 24*time.Hour), "How often it is asked, a tenth more or less, 1s to 24h; after failures from each second to\neach 2m, or to this if it is longer."},
		{"manifestURLCAFile", "", restart, path(&c.ManifestURLCA, ""), "CAs that its certificate may be of, PEM; \"\" is the machine's. (ours)"},
		{"manifestURLCertFile", "", restart, path(&c.ManifestURLCert, ""), "Certificate to show it, PEM. (ours)"},
		{"manifestURLPrivateKeyFile", "", restart, path(&c.ManifestURLKey, ""), "Its private key. (ours)"},
		{"manifestURLTokenFile", "", restart, path(&c.ManifestURLToken, ""), "Bearer token for it. These four files are read again when they change. (ours)"},
		{"manifestURLPublicKey", "", restart, text(&c.ManifestURLPublicKey, "", signature.CheckPublicKey), "The line that `monopod sign` prints: what the URL gives counts only if that key signed it, beside it as\nURL.sig, with a monopod.serial that is higher than before; \"\" accepts all. See docs/fleet.md. (ours)"},
		{"allowInsecureManifests", "", restart, boolean(&c.InsecureManifests, false), "Whether other users than root may write the manifests, and so run anything here as root. Without it\nmonopod refuses to start with a new root folder then, and warns with one that it has used before. (ours)"},
		{"nodeName", "node-name", restart, text(&c.NodeName, "", nodeName), "What pods get as a suffix; \"\" is the host's name at the first start."},
		{"nodeIP", "node-ip", restart, text(&c.NodeIP, "", isNodeIP), "The machine's address that pods learn and that hostNetwork pods have, or one of each family, the main\none first: 192.0.2.7,2001:db8::7; \"\" is that of the default route. (ours; a kubelet has the flag)"},
		{"podNameSuffix", "", restart, boolean(&c.PodNameSuffix, true), "Whether pods are called <name>-<node>, as with a kubelet. (ours)"},
		{"nodeLabels", "node-labels", live, labels(&c.NodeLabels), "Labels that pods can select besides the usual ones. (ours)"},
		{"fieldValidation", "", restart, one(&c.Validation, "Strict", "Strict", "Warn", "Ignore"), "Unknown and duplicate fields of manifests: Strict refuses, Warn, Ignore. (ours)"},
		{"containerRuntimeEndpoint", "runtime-endpoint", restart, text(&c.Endpoint, "", must(isEndpoint, "want unix:///path/to/socket")), "The CRI socket, unix:///path; \"\" is containerd's or CRI-O's, whichever is there."},
		{"managedRuntime", "managed-runtime", restart, boolean(&c.ManagedRuntime, false), "Whether monopod starts a containerd of its own, of the binary in PATH, instead of using one that runs. (ours)"},
		{"runtimeClasses", "", restart, byKey(&c.RuntimeClasses, runtimeClass), "The runtime's handlers by the runtimeClassName that stands for them: {gvisor: runsc}. (ours)"},
		{"root", "root", restart, path(&c.Root, "/var/lib/monopod"), "Folder for volumes, checkpoints and status. (ours)"},
		{"podLogsDir", "pod-logs", restart, path(&c.PodLogs, DefaultPodLogs), "Folder for the containers' logs."},
		{"listen", "listen", restart, orNone(text(&c.Listen, "127.0.0.1:10255", must(isAddress, "not of the form host:port"))), "TCP address of the read-only endpoint; \"\" is none. One that is not loopback needs a certificate,\nand clientCAFile or tokenFile. (ours)"},
		{"healthzPort", "", restart, value(&c.HealthzPort, 0, within(0, 65535, "must be from 0 to 65535")), "TCP port that serves /healthz alone, besides listen: kubeadm asks 10248; 0 is none."},
		{"healthzBindAddress", "", restart, onLoopback(text(&c.HealthzAddress, defaultHealthz, loopback)), "Its IP address, one of the loopback: for others to ask, there is listen."},
		{"podResources", "", restart, boolean(&c.PodResources, false), "Whether clients of a kubelet may ask which cpus and devices containers have for themselves, on\npod-resources/kubelet.sock in the root folder. (ours)"},
		{"socket", "socket", restart, path(&c.Socket, "/run/monopod.sock"), "Unix socket that the other commands use. (ours)"},

		{"tlsCertFile", "tls-cert-file", restart, path(&c.TLSCert, ""), "Certificate for that address, PEM; with one it speaks TLS only. This file, and those below, are\nread again when they change."},
		{"tlsPrivateKeyFile", "tls-private-key-file", restart, path(&c.TLSKey, ""), "Its private key."},
		{"tlsCipherSuites", "", restart, list(&c.TLSCiphers, nil, cipher), "Ciphers for TLS 1.2 by Go's names; without any Go's."},
		{"tlsMinVersion", "", restart, one(&c.TLSMinVersion, "VersionTLS12", "VersionTLS12", "VersionTLS13"), "VersionTLS12 or VersionTLS13."},
		{"authentication.x509.clientCAFile", "client-ca-file", restart, path(&c.ClientCA, ""), "Who comes with a client certificate of one of these CAs may ask."},
		{"tokenFile", "token-file", restart, path(&c.Tokens, ""), "Who says one of the bearer tokens in this file, one a line, may ask, too. (ours)"},
		{"shutdownGracePeriod", "", restart, duration(&c.ShutdownGrace, 0, time.Second, 24*time.Hour), "By how much the shutdown of the machine is delayed, by logind, so that pods stop in order: first those\nwith the lower priority, and of these first the ones that start after others; 0s: it is not."},
		{"shutdownGracePeriodCriticalPods", "", restart, duration(&c.ShutdownGraceCritical, 0, time.Second, 24*time.Hour), "How much of that is for critical pods, which stop last: those of a priority of 2000000000 or more, or\nof the class system-cluster-critical or system-node-critical."},
		{"shutdownGracePeriodByPodPriority", "", restart, items(&c.ShutdownByPriority, shutdownPriority), "In place of both, for how long the pods from each priority on may stop, the lowest first:\n[{priority: 0, shutdownGracePeriodSeconds: 20}, {priority: 1000, shutdownGracePeriodSeconds: 10}]."},
		{"logLevel", "log-level", live, anyCase(one(&c.LogLevel, "info", "debug", "info", "warn", "error")), "The least that is logged: debug, info, warn or error. (ours)"},
	}
}

// podRows are about what pods get, and how many there may be.
func podRows(c *Config) []row {
	return []row{
		{"keepTerminatedPodVolumes", "", live, boolean(&c.KeepEndedVolumes, false), "Whether pods that ended keep their volumes until their manifest changes or goes. (ours)"},
		{"podHosts", "", live, boolean(&c.PodHosts, false), "Whether pods find each other by name and name.namespace, in their /etc/hosts. (ours)"},
		{"followResolvConf", "", live, boolean(&c.FollowResolvConf, false), "Whether running pods that have the machine's name servers follow resolvConf when it changes. Containers\nthat started before this was true keep theirs. (ours)"},
		{"updateStrategy", "", live, one(&c.UpdateStrategy, "Prepare", "Prepare", "StopFirst"), "Whether a changed pod runs on until its new version has its images, its objects and its place on\nthe node: Prepare, or StopFirst, as with a kubelet. A pod's annotation monopod.update wins. (ours)"},
		{"updateHealth", "", live, duration(&c.UpdateHealth, 0, time.Second, 24*time.Hour), "Within what time a new version must be ready that took the place of one that ran, else the former\ncomes back, with the images that it ran; 0s: no matter. A pod's annotation monopod.update-health wins. (ours)"},
		{"updateStable", "", live, duration(&c.UpdateStable, 10*time.Second, time.Second, time.Hour), "How long it must then stay ready, 1s to 1h. (ours)"},
		{"followImages", "", live, duration(&c.FollowImages, 0, 10*time.Minute, 30*24*time.Hour), "How often it is checked whether the tags of the images of pods have moved, 10m to 720h; then they\nare updated; 0s: never. A pod's annotation monopod.follow-images wins. (ours)"},
		{"updatePolicy", "", live, one(&c.UpdatePolicy, "InPlace", "InPlace", "Replace"), "Whether a changed pod stays and changes as little as it can: InPlace, or Replace, as with a\nkubelet: any change makes another pod of it. A pod's annotation monopod.update wins. (ours)"},
		{"updateWindow", "", live, text(&c.UpdateWindow, "", isWindows), "When pods may be updated and removed, in local time: `Sun 02:00-04:00`, `Mon-Fri 23:00-01:00`, or\n`02:00-04:00` on every day, several separated by commas; \"\" is ever. First starts and restarts\nafter crashes do not wait. (ours)"},
		{"updateLockMax", "", live, duration(&c.UpdateLockMax, time.Hour, time.Second, 7*24*time.Hour), "How long an update waits at most for the file of the pod's annotation monopod.update-lock to go, 1s to\n168h. (ours)"},
		{"resolvConf", "resolv-conf", restart, orNone(path(&c.ResolvConf, "/etc/resolv.conf")), "Where pods get the machine's name servers from; with \"\" they ask this machine itself."},
		{"clusterDNS", "", restart, list(&c.ClusterDNS, nil, must(isIP, "no IP address")), "Name servers of pods with dnsPolicy ClusterFirst; without any they get the machine's."},
		{"clusterDomain", "", restart, text(&c.ClusterDomain, "", must(isDomain, "no domain such as cluster.local")), "Domain whose names such pods find without it."},

		{"cgroupDriver", "cgroup-driver", restart, one(&c.CgroupDriver, "auto", "auto", "cgroupfs", "systemd", "none"), "auto and none are as with --cgroup-driver; cgroupfs and systemd count, as with a kubelet,\nonly where the runtime does not say which is its own. --cgroup-driver decides."},
		{"cgroupRoot", "cgroup-root", restart, text(&c.CgroupRoot, "/", nil), "The cgroup that holds kubepods; it must exist."},
		{"cgroupsPerQOS", "", restart, boolean(&c.CgroupsPerQOS, true), "false is cgroupDriver none: pods get no cgroups."},
		{"enforceNodeAllocatable", "", restart, list(&c.Enforce, []string{"pods"}, level), "What is enforced: pods holds all pods together to what is not reserved, system-reserved and\nkube-reserved hold the processes of these cgroups to what is reserved for them (cpu as weight, memory,\npid), and with -compressible after one of these names by the cpu alone. [] or [none] is nothing."},
		{"systemReserved", "", restart, byKey(&c.SystemReserved, reservation), "What pods do not get: cpu, memory, ephemeral-storage, pid."},
		{"kubeReserved", "", restart, byKey(&c.KubeReserved, reservation), "The same again; both are summed."},
		{"systemReservedCgroup", "", restart, text(&c.SystemReservedCgroup, "", nil), "The cgroup that system-reserved of enforceNodeAllocatable limits, such as /system.slice; with\ncgroupDriver systemd a slice. It must exist when monopod starts. What its processes use beyond is\nreclaimed from them, or they are killed, as with a kubelet."},
		{"kubeReservedCgroup", "", restart, text(&c.KubeReservedCgroup, "", nil), "The same, of kube-reserved."},
		{"evictionHard", "", restart, byKey(&c.EvictionHard, threshold), "memory.available and nodefs.available are kept from pods when they are admitted, as amounts\nor as percentages. Nothing is evicted, hence nothing is kept unless it is given. With less than\nthis (unless given: memory 100Mi, nodefs 10%, imagefs 15%, inodes 5%) the node reports pressure."},
		{"maxPods", "", live, value(&c.MaxPods, 110, atLeast[int64](0, "must not be negative; 0 is the default")), "How many pods the node holds."},
		{"podsPerCore", "", live, value(&c.PodsPerCore, 0, atLeast[int64](0, "must not be negative; 0 is no bound")), "Bounds them by the number of cores too; 0 does not."},
		{"podPidsLimit", "", restart, value(&c.PodPids, -1, nil), "Processes and threads of each pod; below 1 there is no limit."},
		{"cpuCFSQuota", "", restart, boolean(&c.CFSQuota, true), "Whether cpu limits are enforced."},
		{"cpuCFSQuotaPeriod", "", restart, duration(&c.CFSPeriod, 100*time.Millisecond, time.Millisecond, time.Second), "In what periods they are, 1ms to 1s."},
		{"cpuManagerPolicy", "", restart, one(&c.CPUPolicy, cpus.None, cpus.None, cpus.Static), "With static, containers of Guaranteed pods that request whole cpus have these for themselves, and all\nothers share the rest; something must be reserved of the cpu then. With none all share all."},
		{"cpuManagerPolicyOptions", "", restart, byKey(&c.CPUOptions, cpuOption), "Of static, and refused with none: full-pcpus-only, strict-cpu-reservation,\ndistribute-cpus-across-numa or prefer-align-cpus-by-uncorecache, each \"true\" or \"false\"."},
		{"cpuManagerReconcilePeriod", "", restart, duration(&c.CPUEvery, 10*time.Second, time.Second, time.Hour), "How often containers are checked for the cpus that are theirs, besides at once after a change, 1s to 1h."},
		{"reservedSystemCPUs", "", restart, text(&c.ReservedCPUs, "", must(isCPUs, "no list of cpus such as 0-1,8")), "Which cpus are reserved, such as 0-1,8, in place of an amount of cpu in systemReserved and kubeReserved:\nno container has them for itself. \"\" leaves the choice to static."},
		{"devices", "", restart, byKey(&c.Devices, device), "Resources that pods request in resources.limits, each made of the devices that match paths, or that\nhave a name in cdi: {example.com/serial: {paths: [/dev/ttyUSB*], permissions: rw, count: 1}}. count\nis how many containers may have a device at a time; with shared: true any number. (ours)"},
		{"singleProcessOOMKill", "", restart, boolean(&c.SingleProcessOOMKill, false), "Out of memory, kill one process and not the container (cgroup v2)."},
		{"failSwapOn", "", restart, boolean(&c.FailSwapOn, false), "Whether to refuse to start on a machine with swap. Containers get none either way."},

		{"seccompDefault", "", restart, boolean(&c.SeccompDefault, false), "Whether containers that ask for nothing get the runtime's seccomp profile."},
		{"allowedUnsafeSysctls", "", restart, list(&c.AllowedUnsafeSysctls, nil, must(isOfPods, "the whole machine's: it cannot be allowed to pods")), "Kernel settings that pods may change beyond the safe ones: names, or prefixes that end in *."},

		{"crashLoopBackOff.firstContainerRestartPeriod", "", live, duration(&c.BackOffFirst, 10*time.Second, 100*time.Millisecond, 5*time.Minute), "How long a container that crashed again waits, the second time, 100ms to 5m. (ours)\nA pod's annotation monopod.backoff-first wins."},
		{"crashLoopBackOff.maxContainerRestartPeriod", "", live, duration(&c.BackOffMax, 5*time.Minute, time.Second, 5*time.Minute), "The wait doubles up to this, 1s to 5m. A pod's annotation monopod.backoff-max wins."},
	}
}

// imageRows are about pulling and removing images.
func imageRows(c *Config) []row {
	return []row{
		{"serializeImagePulls", "", restart, boolean(&c.SerializePulls, false), "true pulls one image at a time; false without maxParallelImagePulls as many as are wanted."},
		{"maxParallelImagePulls", "", restart, value(&c.ImagePulls, 4, atLeast(1, "must be at least 1")), "How many images are pulled at a time."},
		{"registryPullQPS", "", live, value(&c.PullQPS, 0, atLeast(0, "must not be negative")), "How many pulls start per second; others wait for their turn. 0 is no limit."},
		{"registryBurst", "", live, value(&c.PullBurst, 10, atLeast(0, "must not be negative")), "How many of them may begin at once."},
		{"", "image-credential-provider-config", restart, path(&c.CredentialProviders, ""), ""},
		{"", "image-credential-provider-bin-dir", restart, path(&c.CredentialProviderPrograms, ""), ""},
		{"imageDir", "image-dir", restart, paths(&c.ImageDirs), "Folders of image archives, with a comma between: *.tar, *.tar.gz, *.tgz and *.tar.zst there are given\nto the runtime, and their images stay as long as they do; \"\" is images in the root folder. (ours)"},
		{"imageGCHighThresholdPercent", "", live, value(&c.ImageGCHigh, 85, within(1, 100, "must be from 1 to 100")), "How full the disk of the images is when unused ones begin to go; 100 is never.\nNo image goes that a manifest names."},
		{"imageGCLowThresholdPercent", "", live, value(&c.ImageGCLow, 80, within(1, 100, "must be from 1 to 100")), "How full it may still be when that ends."},
		{"imageMinimumGCAge", "", live, duration(&c.ImageMinAge, 2*time.Minute, 0, ever), "An image that has come less long ago stays."},
		{"imageMaximumGCAge", "", live, duration(&c.ImageMaxAge, 0, 0, ever), "An image unused for longer goes even if there is room; 0s is never."},
	}
}

// logRows are about the logs kept of containers.
func logRows(c *Config) []row {
	return []row{
		{"containerLogMaxSize", "", live, value(&c.LogMaxSize, resource.MustParse("10Mi"), notZero), "From what size on the log of a running container is rotated; a negative one: never."},
		{"containerLogMaxFiles", "", live, value(&c.LogMaxFiles, 5, atLeast(2, "must be at least 2")), "How many logs of a container there are at most, the one it writes to included; at least 2.\nThe newest former one is kept as it is, older ones compressed."},
		{"containerLogMonitorInterval", "", live, duration(&c.LogInterval, 10*time.Second, time.Second, time.Hour), "How long after a look at all logs the next is, 1s to 1h: a log grows beyond its size by\nwhat is written meanwhile."},
		{"containerLogMaxWorkers", "", live, value(&c.LogMaxWorkers, 1, atLeast(1, "must be at least 1")), "How many logs are rotated at a time."},
		{"deadContainersPerContainer", "", live, value(&c.DeadContainers, 1, atLeast(1, "must be at least 1")), "How many dead ones of each container are kept, with their logs; at least 1, by which\nits pod's status goes. (ours)"},
	}
}
