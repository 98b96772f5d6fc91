package runtimewords

import "testing"

// What the recordings do not have.
func TestWhatStandsAgainstAStart(t *testing.T) {
	for text, want := range map[string]Cause{
		// runc 1.1, 1.2, 1.0 and older, as a logger has it
		`container create failed: runc create failed: unable to start container process: exec: "nosuch": executable file not found in $PATH`:                                NotFound,
		`container create failed: runc create failed: unable to start container process: error during container init: exec: "./a b": stat ./a b: no such file or directory`: NotFound,
		`container create failed: time="2026-01-02T03:04:05Z" level=error msg="runc create failed: unable to start container process: exec: \"/x\": permission denied"`:     NotExecutable,
		`container create failed: container_linux.go:380: starting container process caused: exec: "nosuch": executable file not found in $PATH`:                            NotFound,
		`container create failed: container_linux.go:345: starting container process caused "exec: \"nosuch\": executable file not found in $PATH"`:                         NotFound,
		`container create failed: runc create failed: unable to start container process: exec: "/etc": is a directory`:                                                      NotExecutable,
		// crun
		"container create failed: crun: executable file `/nosuch` not found: No such file or directory": NotFound,
		// CRI-O, and containerd
		"pod set memory limit 1048576 too low; should be at least 12582912":                       MemoryTooLow,
		"setting container user: unable to find user app: no matching entries in passwd file":     NoUser,
		"failed to create containerd container: mount callback failed on /mnt/1: no groups found": NoUser,
		"setting container user: unable to find group app: no matching entries in group file":     NoUser,

		// What may pass: a device, a volume, a hook, a program of the machine, a name, the time.
		`container create failed: runc create failed: unable to start container process: error during container init: error mounting "/data" to rootfs at "/data": stat /data: no such file or directory`:            Unknown,
		`container create failed: runc create failed: unable to start container process: error during container init: error running hook #0: error running hook: exec: "nvidia": executable file not found in $PATH`: Unknown,
		`container create failed: runc create failed: unable to start container process: error running createContainer hook #0: fork/exec /usr/bin/toolkit: no such file or directory`:                               Unknown,
		`container create failed: runc create failed: unable to start container process: unable to apply cgroup configuration: open /sys/fs/cgroup/x/cgroup.procs: permission denied`:                                Unknown,
		"container create failed: cannot stat `/run/data`: No such file or directory":                                                                                                                                Unknown,
		"container create failed: mount `/var/lib/data` to `data`: Permission denied":                                                                                                                                Unknown,
		"container create failed: error executing hook `/usr/bin/hook` (exit code: 1)":                                                                                                                               Unknown,
		`failed to find plugin "bridge" in path [/opt/cni/bin]: no such file or directory`:                                                                                                                           Unknown,
		`error resolving symlink "/dev/fuse": lstat /dev/fuse: no such file or directory`:                                                                                                                            Unknown,
		`exec: "crun": executable file not found in $PATH`:                                                                                                                                                           Unknown,
		`exec: "conmon": executable file not found in $PATH`:                                                                                                                                                         Unknown,
		"error reserving ctr name k8s_c_job_default_1_0 for id 12: name is reserved":                                                                                                                                 Unknown,
		"no answer within 2m0s": Unknown,
		"container create failed: runc create failed: unable to start container process: container init was OOM-killed (memory limit too low?)": Unknown,
	} {
		if got := Of(Create, text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestWhatStandsAgainstAnImage(t *testing.T) {
	for text, want := range map[string]Cause{
		`failed to resolve reference "r/x:1": r/x:1: not found`:                      NoImage,
		`reading manifest 1 in r/x: manifest unknown`:                                NoImage,
		`pull access denied, repository does not exist or may require authorization`: NoImage,
		"reading manifest latest in docker.io/x/y: errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required\n": NoImage,
		`initializing source docker://x/y:1: reading manifest 1 in docker.io/x/y: requested access to the resource is denied`:                            NoImage,
		`reading manifest 1 in r.example/x: repository name not known to registry`:                                                                       NoImage,
		`reading manifest 1 in r.example/x: authentication required`:                                                                                     NoImage,
		`reading manifest 1 in quay.io/x: access to the requested resource is not authorized`:                                                            NoImage,
		`short name mode is enforcing, but image name nginx:1 returns ambiguous list`:                                                                    ShortName,
		`short-name "nginx:1" did not resolve to an alias and no unqualified-search registries are defined in "/etc/containers/registries.conf"`:         ShortName,

		`pinging container registry r: Get "https://r/v2/": dial tcp: lookup r: no such host`: Unknown,
		`pinging container registry r: Get "https://r/v2/": Proxy Authentication Required`:    Unknown,
		`unexpected status from HEAD request: 503 Service Unavailable`:                        Unknown,
		`reading manifest 1 in r/x: toomanyrequests: too many requests`:                       Unknown,
	} {
		if got := Of(Image, text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
