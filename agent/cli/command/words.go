package command

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
	"monopod/agent/status"
)

// words are what kubectl, crictl, docker and systemctl call commands, and what to do
// here. FILE stands for the pod's file, DIR for the folder of manifests.
var words = []struct{ names, here string }{
	{"get list ls pods pod status", "here it is `monopod ps`"},
	{"delete rm remove down kill", "a pod stops when its file goes: remove FILE"},
	{"apply create add start up deploy", "a pod runs once its manifest is in place: put the file into DIR"},
	{"edit patch set replace scale", "a pod is what its file says: edit FILE"},
	{"rollout reload", "here it is `monopod restart`; a manifest that has changed is followed by itself"},
	{"log tail", "here it is `monopod logs`"},
	{"inspect show explain", "here it is `monopod describe`"},
	{"sh shell attach enter", "here it is `monopod exec -it POD -- sh`"},
	{"stats usage", "here it is `monopod top`"},
	{"image pull", "images are pulled when a pod needs them; `monopod images` lists them"},
	{"lint check test diff", "here it is `monopod validate`"},
	{"agent serve server daemon kubelet", "here it is `monopod run`"},
	{"job", "here it is `monopod once`"},
	{"port-forward proxy expose", "a pod's ports are reached at its address, which `monopod ps -o wide` shows"},
	{"cp", "copy by `monopod exec POD -- cat PATH`, or through a hostPath volume"},
	{"cordon uncordon drain taint", "there is one node and no scheduler: move the files out of DIR"},
	{"cluster-info api-resources auth login", "there is no cluster and no API server"},
}

// flagWords are what a kubelet calls the flags of run, and what to do here.
var flagWords = []struct{ names, here string }{
	{"--hostname-override", "here it is --node-name"},
	{"--pod-manifest-path --static-pod-path --manifest-dir", "here it is --manifests"},
	{"--container-runtime-endpoint --cri-socket --image-service-endpoint", "here it is --runtime-endpoint"},
	{"--root-dir --data-dir", "here it is --root"},
	{"--pod-log-dir --pod-logs-dir", "here it is --pod-logs"},
	{"--v -v --verbosity", "here it is --log-level, with debug for the most"},
	{"--logging-format", "here it is --log-format"},
	{"--address --port --read-only-port --healthz-port --healthz-bind-address", "here it is --listen HOST:PORT"},
	{"--tls-private-key", "here it is --tls-private-key-file"},
	{"--kubeconfig --bootstrap-kubeconfig --api-servers --register-node --cloud-provider", "there is no API server: leave it out"},
	{"--manifest-url", "manifests are read from a folder: see --manifests"},
	{"--cluster-dns --cluster-domain --max-pods --eviction-hard --system-reserved --kube-reserved --feature-gates --fail-swap-on",
		"it is a setting of the file that --config names; `monopod config --defaults` lists them"},
}

// ownFlag says what a kubelet's flag is called here, "" if there is nothing to say.
func ownFlag(k *cli.Command, name string) string {
	if flagOf(k, "--runtime-endpoint") == nil || flagOf(k, "--config") == nil {
		return "" // it runs no pods
	}
	for _, w := range flagWords {
		if slices.Contains(strings.Fields(w.names), name) {
			return "there is no flag " + name + ": " + w.here
		}
	}
	return ""
}

// ownWord says what to do here instead of a command of another tool, "" if there is
// nothing to say. Files are those of the agent, if one answers.
func ownWord(c *cli.Context, name string, args []string) string {
	for _, w := range words {
		if !slices.Contains(strings.Fields(w.names), name) {
			continue
		}
		if !strings.Contains(w.here, "FILE") && !strings.Contains(w.here, "DIR") {
			return w.here
		}
		file, dir := filesOf(c.Context, args)
		return strings.NewReplacer("FILE", file, "DIR", dir).Replace(w.here)
	}
	return ""
}

// filesOf returns where the manifest of the pod is that args name, and the folder.
func filesOf(ctx context.Context, args []string) (file, dir string) {
	file, dir = "its file from the folder of manifests", "the folder of manifests"
	var m status.Manifests
	socket := cmp.Or(os.Getenv(socketVariable), DefaultSocket)
	body, err := client.GetWithin(ctx, completeTimeout, socket, "/manifests")
	if err != nil || json.Unmarshal(body, &m) != nil || m.Dir == "" {
		return file, dir
	}
	file, dir = "its file from "+m.Dir, m.Dir
	pods := AskPods(ctx, socket)
	for _, arg := range args {
		p, err := client.FindPod(pods, arg, "")
		if err != nil {
			continue
		}
		for _, f := range m.Files {
			if print.Gives(f, p) {
				return f.Path, dir
			}
		}
	}
	return file, dir
}
