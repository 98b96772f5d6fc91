package docs

// notRun has the blocks that no test runs, each by its page and first line, with the reason.
var notRun = []struct {
	page, first, reason string
	in                  string // the page that has the same lines in blocks that are run; "": none
}{
	{"README.md", "apt-get install -y containerd containernetworking-plugins iptables make", "docs/install.md has it", "install.md"},
	{"README.md", `for phase in "certs all" "kubeconfig all" "etcd local" "control-plane all"; do kubeadm init phase $phase; done`, "docs/control-plane.md runs it with a file of settings, as kubeadm without one asks the internet for a version", ""},
	{"README.md", "staticPodURL: https://boxes.example.com/box7.yaml   # what came last counts while there is no answer", "TestTheReadmesSettingsAreRead checks it, and docs/edge.md has one that is run", ""},
	{"README.md", "monopod once --timeout 10m --report junit=report.xml --set test=registry.example/app:$SHA ci/", "a form: docs/ci.md has one that is run", ""},
	{"README.md", "make test     # everything that is tested: lint, unit, arm64 emulated, e2e on two containerds", "it is what .ci/run runs", ""},
	{"ci.md", "steps:", "it is for GitHub; what it runs is above it", ""},
	{"ci.md", "test:", "it is for GitLab; what it runs is above it", ""},
	{"ci.md", "pipeline {", "it is for Jenkins; what it runs is above it", ""},
	{"cri-o.md", "[crio]", "make e2e-crio runs CRI-O with it, which Debian 12 does not have", ""},
	{"cri-o.md", "monopod stop --all      # with hooks and grace periods", "it changes the runtime of a machine: no test has two that share a machine", ""},
	{"devices.md", "devices:", "a part of a file of settings, for devices that a machine of the tests does not have", ""},
	{"devices.md", "spec:", "a part of a manifest; make e2e runs one (GivesOnePodADevice)", ""},
	{"devices.md", `resources: {limits: {"podman.io/device=/dev/fuse": 1}}`, "a part of a manifest; make e2e runs one (GivesDevicesByName)", ""},
	{"devices.md", "metadata:", "a part of a manifest; make e2e runs one (GivesDevicesByName)", ""},
	{"images.md", "docker save docker.io/library/app:1 | gzip > app.tar.gz", "docker and skopeo have a machine with a network", ""},
	{"images.md", "monopod images load app.tar.gz      # or - for standard input (with containerd); the agent need not run", "make e2e runs the commands, where containerd has its ctr", ""},
	{"into-a-cluster.md", "monopod export --config /etc/monopod/config.yaml --for-kubelet /var/lib/monopod handover", "make test-handover runs the command", ""},
	{"into-a-cluster.md", "monopod export --config /etc/monopod/config.yaml --inline --for-kubelet /var/lib/monopod /etc/kubernetes/manifests", "it needs systemd; make test-handover runs export, and a kubelet with an API server", ""},
	{"into-a-cluster.md", "monopod export --config /etc/monopod/config.yaml --inline --for-kubelet /var/lib/monopod /var/lib/rancher/k3s/agent/pod-manifests", "it needs k3s; make test-handover runs export", ""},
	{"into-a-cluster.md", "systemctl disable --now kubelet", "it needs a kubelet: make test-handover runs the commands", ""},
	{"into-a-cluster.md", "take over   kube-system/etcd-edge7             containers that run: 1", "an example of differences: TestTheSurveyIsPrinted has the form", ""},
	{"into-a-cluster.md", "monopod adopt --config /etc/monopod/config.yaml --yes", "it needs a kubelet: make test-handover runs the commands", ""},
	{"manifests.md", "metadata:", "a part of a manifest", ""},
	{"manifests.md", "staticPodPath: [/usr/lib/monopod/manifests, /etc/monopod/manifests]", "a part of a file of settings: make e2e runs an agent with two folders", ""},
	{"observe.md", "monopod ps                     # the pods, and below them all that is wrong, in words", "a list: TestTheDocsTypeWhatThereIs checks each line", ""},
	{"observe.md", "/var/lib/monopod/status/", "a list of files", ""},
	{"observe.md", "- job_name: kubelet", "docs/monitor.md has one that promtool checks", ""},
	{"runtimes.md", "apt-get install containerd containernetworking-plugins", "make e2e runs the command (TestManaged)", ""},
	{"runtimes.md", "runtimeClasses: {small: crun}", "a part of a file of settings; make e2e runs pods with it (RunsCrunBesideRunc)", ""},
	{"runtimes.md", `[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.crun]`, "a part of containerd's configuration, as make e2e writes it", ""},
	{"systemd.md", "crictl rmp -f $(crictl pods -q --label monopod.instance=$(cat /var/lib/monopod/instance))", "Debian has no crictl", ""},
}

// NotRun returns why no test runs the block of that page; "": a test does.
func (b Block) NotRun(page string) string {
	for _, row := range notRun {
		if row.page == page && row.first == b.First() {
			return row.reason
		}
	}
	return ""
}
