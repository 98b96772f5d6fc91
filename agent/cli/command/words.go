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
	"monopod/agent/print"
	"monopod/agent/status"
)

// tools are names that people type by habit, and words that stand before another tool's command:
// the words that follow are the command.
var tools = strings.Fields("kubectl docker podman crictl nerdctl ctr systemctl k3s microk8s oc nomad container containers pod pods compose")

// words are commands of kubectl, crictl, docker, podman and systemctl, and what to do here. A name
// has one word or two; | separates words with the same meaning. {FILE} is replaced by the pod's
// file, {DIR} by the folder of manifests.
var words = []struct{ names, here string }{
	{"get|list|ls|pod|pods|po|task|tasks|list-units|is-active|is-failed|state|overview", "here it is `monopod ps`"},
	{"get|list pod|pods|po|all|containers", "here it is `monopod ps`"},
	{"get|list|inspect node|nodes|no, node|nodes", "here it is `monopod describe node`; `monopod top node` says what it uses"},
	{"get|list event|events|ev, journal|journalctl", "here it is `monopod events`"},
	{"get|list|describe|inspect pvc|pv|persistentvolumeclaim|persistentvolumeclaims|persistentvolume|persistentvolumes|volumes|volume|sc|storageclass, volumes|pvc|pv",
		"here it is `monopod volume ls`"},
	{"get|list|describe|inspect cm|configmap|configmaps|secret|secrets, object|cm|configmap|configmaps|secret|secrets",
		"here it is `monopod objects`; values are never shown"},
	{"get|list|describe|inspect deploy|deployment|deployments|rs|replicaset|replicasets|sts|statefulset|statefulsets|ds|daemonset|daemonsets|job|jobs|rc, deployment|deployments|statefulset|daemonset|replicaset",
		"a workload is the pods that its file makes: `monopod ps` lists them, `monopod ps --files` the files"},
	{"get|list|describe|create cronjob|cronjobs|cj, cronjob|list-timers", "CronJobs are not run: let a timer of systemd or cron call `monopod once job.yaml`"},
	{"get|list|describe|inspect|create|delete|edit|patch svc|service|services|ep|endpoints|endpointslices|ing|ingress|ingresses, service|svc|ingress",
		"there are no Services: a pod is reached at its address, which `monopod ps -o wide` shows, or at a hostPort"},
	{"get|list|describe|create|delete ns|namespace|namespaces, namespace|namespaces|ns", "a namespace exists while it has pods: `monopod ps -A` shows it with each"},
	{"get|list|describe image|images", "here it is `monopod images`"},
	{"delete node|nodes|no", "there is one node: `monopod stop --all` ends its pods, `monopod hold` keeps it as it is"},
	{"get|list|describe|inspect|create|delete hpa|sa|serviceaccount|serviceaccounts|role|roles|rolebinding|crd|crds|netpol|networkpolicies|quota|limits|pdb|cs|componentstatuses|csr|lease|leases|clusterrole|clusterrolebinding|priorityclass|priorityclasses|pc|runtimeclass|runtimeclasses|token",
		"there is no API server and no such object; `monopod ps --files` lists what there is"},
	{"describe unit, inspect|inspectp|inspect-pod, job inspect", "here it is `monopod describe`"},
	{"status|alloc, job|alloc status", "here it is `monopod ps`, and of one pod `monopod describe POD`"},
	{"show", "here it is `monopod describe`; `monopod describe -o yaml` has every field"},
	{"explain", "the fields are those of Kubernetes; `monopod validate` names those that are wrong or have no effect"},
	{"delete|rm|remove|rmp|down|uninstall|prune|disable|mask", "a pod goes when its file goes: remove {FILE}; `monopod stop POD` ends it and keeps the file"},
	{"delete cm|configmap|secret", "it goes when its file goes; `monopod objects` names the file"},
	{"delete|rm pvc|volume", "here it is `monopod volume rm NAMESPACE/NAME`"},
	{"kill|stopp|evict, job|alloc stop", "here it is `monopod stop POD`, which ends it with its grace until `monopod start POD`"},
	{"apply|create|add|up|deploy|runp|enable|unmask|play|kube|install|submit, job run", "a pod runs once its manifest is in place: put the file into {DIR}; `monopod diff` says before what it would change"},
	{"create job, job", "here it is `monopod once job.yaml`"},
	{"create cm|configmap|secret|secrets", "put a file with it into {DIR}; `monopod objects` lists those that are there"},
	{"create volume|pvc, volume create", "a pod that mounts a claim makes it; by hand it is `monopod volume make NAMESPACE/NAME`"},
	{"edit|patch|set|replace|label|annotate|update|rename", "a pod is what its file says: edit {FILE}; monopod applies the change by itself"},
	{"scale|autoscale, job scale", "a workload is one pod here, or none with replicas: 0: edit {FILE}; `monopod stop POD` ends a pod until `monopod start POD`"},
	{"rollout", "monopod applies a changed file by itself: `monopod ps --files` says how far it is, `monopod restart POD` restarts"},
	{"rollout status", "here it is `monopod wait POD --for updated`"},
	{"rollout restart, try-restart|reload-or-restart|reset-failed, job|alloc restart", "here it is `monopod restart POD`"},
	{"rollout undo, undo|revert, job revert, helm rollback", "here it is `monopod rollback POD`; an update on trial that does not work is rolled back by itself (updateHealth)"},
	{"rollout history, job history, helm history", "here it is `monopod history POD`"},
	{"rollout pause, freeze|lock", "here it is `monopod hold POD`, until `monopod release POD`"},
	{"rollout resume, unlock|thaw|unhold", "here it is `monopod release POD`"},
	{"pause|suspend", "no process is frozen here: `monopod stop POD` ends a pod until it is started, `monopod hold POD` keeps it from updates"},
	{"unpause|resume|continue", "here it is `monopod start POD` after a stop, `monopod release POD` after a hold"},
	{"cordon|taint, node eligibility", "there is one node: `monopod hold` lets nothing new start on it, and no update"},
	{"uncordon|untaint", "here it is `monopod release`; pods that were stopped run by `monopod start --all`"},
	{"drain, node drain", "here it is `monopod stop --all`, and `monopod start --all` afterwards"},
	{"reload|daemon-reload|refresh|sync|reconcile", "monopod applies changed manifests by itself; for its own settings it is `systemctl reload monopod`, or SIGHUP without its unit"},
	{"log|tail|console, alloc logs", "here it is `monopod logs`"},
	{"sh|shell|bash|ssh|enter|rsh|execsync, alloc exec", "here it is `monopod exec -it POD -- sh`"},
	{"debug", "there are no debug containers: `monopod exec -it POD -- sh`, `monopod describe POD` and `monopod events POD` are there"},
	{"forward|proxy|expose|port|dashboard-proxy|tunnel",
		"here it is `monopod port-forward POD 8080:80`; a pod has an address, too, which `monopod ps -o wide` shows, or a hostPort"},
	{"copy, alloc fs", "here it is `monopod cp POD:PATH PATH`, or the other way round"},
	{"stats|usage|statsp|metrics|metricsp", "here it is `monopod top`"},
	{"df|du, system df", "`monopod describe node` says how full the disks are, `monopod images` how large images are"},
	{"image|images ls|list|inspect|history|df, inspecti|imagefsinfo|image|img", "here it is `monopod images -o wide`"},
	{"image rm|prune, images remove|rmi|delete, image remove|rmi|delete, rmi|gc|cleanup, system prune",
		"images that no pod uses go by themselves when the disk fills up; here it is `monopod images rm docker.io/library/busybox:1`, or `monopod images prune`"},
	{"image pull, pull|fetch", "an image is pulled when a pod needs it; by hand it is `monopod images pull docker.io/library/busybox:1`"},
	{"image load|import, images import, load|import", "here it is `monopod images load app.tar`"},
	{"image|images build|tag|push|save|export|sign, build|tag|push|commit|buildx|save|search|squash",
		"monopod makes no images: use docker or podman; `monopod images load app.tar` takes what they save"},
	{"login|logout", "credentials of registries are imagePullSecrets of a pod, or `monopod run --image-credential-provider-config FILE`"},
	{"volume prune|remove|delete", "here it is `monopod volume rm NAMESPACE/NAME`; `monopod volume ls` says who uses which"},
	{"network|networks", "the network is that of the CNI plugins in /etc/cni/net.d; `monopod describe POD` has a pod's address, `monopod doctor` checks it"},
	{"lint|check|test|dry-run|verify|kubeval|template, job validate", "here it is `monopod validate web.yaml`; `monopod diff web.yaml` says what it would change"},
	{"check-config|preflight|health|healthcheck|is-system-running|ping", "here it is `monopod doctor`"},
	{"plan, job plan", "here it is `monopod diff web.yaml`"},
	{"info|system|about", "here it is `monopod describe node`, and `monopod version`"},
	{"agent|serve|server|daemon|kubelet", "here it is `monopod run`"},
	{"is-enabled|preset, generate systemd", "pods start with the agent, and the agent at boot once `systemctl enable monopod` was typed"},
	{"reboot|poweroff|halt|shutdown", "monopod does not turn the machine off: `systemctl poweroff` does, and pods stop in order before it (shutdownGracePeriod)"},
	{"monitor", "`monopod events -w` says what happens; `journalctl -fu monopod` is the log of the agent"},
	{"dashboard|ui", "a page is at http://127.0.0.1:10255/, or where `monopod run --listen HOST:PORT` says"},
	{"auto-update", "a container whose imagePullPolicy is Always pulls its image as it starts: `monopod restart POD`"},
	{"swarm|stack, docker swarm|stack|service|config", "there is one node and no swarm: put Pod manifests into {DIR}"},
	{"docker|podman|nerdctl history", "layers are not listed: `monopod images -o wide` lists images, `monopod history POD` the versions of a pod"},
	{"docker|podman|nerdctl diff", "what a container wrote is not listed; `monopod diff web.yaml` says what a manifest would change"},
	{"join|reset|token|bootstrap|add-node|leave|refresh-certs|etcd-snapshot|secrets-encrypt|certificate|upgrade|addons|cluster|kubeadm|minikube|kind|k3d|operator|acl|eval",
		"there is no cluster to set up: `monopod run --manifests DIR` runs the pods of a folder; `monopod doctor` examines the machine"},
	{"helm|kustomize", "manifests are plain files: write what `helm template` or `kubectl kustomize` prints into {DIR}"},
	{"cluster-info|api-resources|api-versions|auth|context|contexts|plugin|options, config view|get-contexts|use-context|current-context|set-context|set",
		"there is no cluster and no API server; the agent's settings are those of `monopod config --defaults`"},
	{"cat|generate, kube generate", "the manifest of a pod is {FILE}; `monopod describe POD -o yaml` is the pod as it runs"},
	{"logs|exec|restart|stop|start|hold|release|wait|top|history|rollback|events|forget deploy|deployment|deployments|rs|replicaset|sts|statefulset|ds|daemonset|job|jobs|svc|service",
		"name the pod, which has its workload's name: `monopod ps` lists the pods"},
	{"kubectl|docker|podman|nerdctl|crictl|ctr|container|oc run", "put a Pod manifest into {DIR}, or run it to its end with `monopod once web.yaml`"},
	{"kubectl|docker|podman|crictl|nerdctl|ctr|systemctl|k3s|microk8s|nomad|compose|container|containers", "leave that word out: `monopod ps`, `monopod help` lists the commands"},
	{"cgroup|checkpoint|restore|migrate|snapshot", "a pod's processes are not saved: `monopod stop POD` ends one and keeps its volumes"},
	{"changes", "here it is `monopod history POD`; `monopod events POD` says what happened"},
}

// flagWords are flags of other tools, and what to do here. In rows without commands they are flags
// of a kubelet, or of other software that runs pods.
var flagWords = []struct{ commands, names, here string }{
	{"", "--hostname-override", "here it is --node-name"},
	{"", "--pod-manifest-path --static-pod-path --manifest-dir", "here it is --manifests"},
	{"", "--container-runtime-endpoint --cri-socket --image-service-endpoint", "here it is --runtime-endpoint"},
	{"", "--root-dir --data-dir", "here it is --root"},
	{"", "--pod-log-dir --pod-logs-dir", "here it is --pod-logs"},
	{"", "--v -v --verbosity", "here it is --log-level, with debug for the most"},
	{"", "--logging-format", "here it is --log-format"},
	{"", "--address --port --read-only-port --healthz-port --healthz-bind-address", "here it is --listen HOST:PORT"},
	{"", "--tls-private-key", "here it is --tls-private-key-file"},
	{"", "--kubeconfig --bootstrap-kubeconfig --api-servers --register-node --cloud-provider", "there is no API server: leave it out"},
	{"", "--image --rm --name --detach -d -p --publish -i -t -it --restart -e --env",
		"a Pod manifest says what runs: put one into the folder of `monopod run`, or run it to its end with `monopod once web.yaml`"},
	{"", "--cluster-dns --cluster-domain --max-pods --eviction-hard --system-reserved --kube-reserved --feature-gates --fail-swap-on",
		"it is a setting of the file that --config names; `monopod config --defaults` lists them"},
	{"validate diff once wait", "-f --filename", "files stand without it, as in `monopod diff web.yaml`"},
	{"run", "-f --filename", "put the file into the folder of --manifests, or run it to its end with `monopod once web.yaml`"},
	{"ps top events images describe", "--format", "here it is -o json or -o yaml"},
	{"ps images", "--no-trunc", "here it is -o wide"},
	{"rollback", "--to-revision", "here it is --to HASH; `monopod history web` lists the hashes"},
	{"version", "--client", "the agent's is at the path /version of its endpoint; leave it out"},
}

// ownFlag returns what to do here instead of a flag of another tool, "" if that is not known, or is
// a flag that this command lacks.
func ownFlag(k *cli.Command, name string) string {
	runsPods := flagOf(k, "--runtime-endpoint") != nil && flagOf(k, "--config") != nil
	for _, w := range flagWords {
		isOf := w.commands == "" && runsPods || slices.Contains(strings.Fields(w.commands), k.Name)
		first := strings.Fields(strings.TrimPrefix(w.here, "here it is "))[0]
		flag := strings.TrimSuffix(first, ",")
		lacks := strings.HasPrefix(flag, "-") && flagOf(k, flag) == nil
		if isOf && !lacks && slices.Contains(strings.Fields(w.names), name) {
			return "there is no flag " + name + ": " + w.here
		}
	}
	return ""
}

// ownWord returns what to do here instead of a command of another tool, "" if that is not known.
// Files are those of the agent, if one answers.
func ownWord(ctx context.Context, app *cli.App, name string, args []string) string {
	here := secondWord(name, args)
	if here == "" && slices.Contains(tools, name) && len(args) > 0 {
		here = behindTool(ctx, app, args)
	}
	here = cmp.Or(here, lookUp(name))
	if !strings.Contains(here, "{") {
		return here
	}
	file, dir := filesOf(ctx, args)
	return strings.NewReplacer("{FILE}", file, "{DIR}", dir).Replace(here)
}

// behindTool is ownWord of the words behind the name of a tool, as in `docker ps`.
func behindTool(ctx context.Context, app *cli.App, args []string) string {
	if here := ownWord(ctx, app, args[0], args[1:]); here != "" || app.Command(args[0]) == nil {
		return here
	}
	return "here it is `monopod " + args[0] + "`"
}

// ownArgument rejects an argument that another tool's command of that name has, as in `images rm`;
// nil if it is not known.
func ownArgument(ctx context.Context, app *cli.App, name string, args []string) error {
	if secondWord(name, args) == "" {
		return nil
	}
	return UsageError("there is no `monopod %s %s`: %s", name, args[firstArgument(args)], ownWord(ctx, app, name, args))
}

// secondWord returns what to do instead of a command and its first argument that is no flag, "" if
// that is not known. Of several kinds (pods,svc) or a kind and a name (svc/web) the first counts.
func secondWord(name string, args []string) string {
	k := firstArgument(args)
	if k < 0 {
		return ""
	}
	kind := args[k]
	if end := strings.IndexAny(kind, ",/."); end > 0 {
		kind = kind[:end]
	}
	return lookUp(name, kind)
}

// firstArgument returns the index of the first argument that is no flag; -1: there is none.
func firstArgument(args []string) int {
	return slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
}

// lookUp returns the table's text for a name of one word or two.
func lookUp(name ...string) string {
	for _, w := range words {
		if slices.ContainsFunc(strings.Split(w.names, ", "), func(n string) bool { return isCalled(n, name) }) {
			return w.here
		}
	}
	return ""
}

// isCalled reports whether words are a name of the table.
func isCalled(pattern string, name []string) bool {
	parts := strings.Fields(pattern)
	if len(parts) != len(name) {
		return false
	}
	for k, part := range parts {
		if !slices.Contains(strings.Split(part, "|"), name[k]) {
			return false
		}
	}
	return true
}

// filesOf returns the path of the manifest of the pod that args name, and the folder.
func filesOf(ctx context.Context, args []string) (file, dir string) {
	file, dir = "its file from the folder of manifests", "the folder of manifests"
	var m status.Manifests
	socket := cmp.Or(os.Getenv(socketVariable), DefaultSocket)
	body, err := client.GetWithin(ctx, completeTimeout, socket, "/manifests")
	if err != nil || json.Unmarshal(body, &m) != nil || m.Dir == "" {
		return file, dir
	}
	all := m.Folders()
	file, dir = "its file from "+strings.Join(all, " or "), all[len(all)-1]
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

// OtherWord is a command of another tool, of one word or two, and what to do here.
type OtherWord struct{ Name, Here string }

// OtherWords returns all such commands, in the order of the tables.
func OtherWords() (all []OtherWord) {
	for _, w := range words {
		for _, pattern := range strings.Split(w.names, ", ") {
			first, second, _ := strings.Cut(pattern, " ")
			for _, name := range strings.Split(first, "|") {
				for _, behind := range strings.Split(second, "|") {
					all = append(all, OtherWord{strings.TrimSpace(name + " " + behind), w.here})
				}
			}
		}
	}
	return all
}

// OtherFlag is a flag of other tools, and the command that does not have it.
type OtherFlag struct{ Command, Name, Here string }

// OtherFlags returns all such flags.
func OtherFlags() (all []OtherFlag) {
	for _, w := range flagWords {
		for _, command := range strings.Fields(cmp.Or(w.commands, "run")) {
			for _, name := range strings.Fields(w.names) {
				all = append(all, OtherFlag{command, name, w.here})
			}
		}
	}
	return all
}
