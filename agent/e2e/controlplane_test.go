//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	registry "github.com/google/go-containerregistry/pkg/v1"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/e2e/rig"
)

// controlPlane is what kubeadm's phases make of a folder: the pods of etcd and of the three programs
// of Kubernetes, all on an address of the rig's network, and a kubelet that joins them.
type controlPlane struct {
	*handover
	dir     string // of kubeadm, as its /etc/kubernetes
	address string
	server  string       // the URL of the API server
	client  *http.Client // of who may do everything
}

// theFour are the names of its pods, programs and images.
var theFour = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// programs returns the paths of what make test-handover has built, by name.
func programs() map[string]string {
	all := map[string]string{}
	for _, path := range strings.Fields(os.Getenv("MONOPOD_CONTROL_PLANE")) {
		all[filepath.Base(path)] = path
	}
	return all
}

// planeImage is one image with the four programs, so that their layer is compressed once.
var planeImage = sync.OnceValues(func() (registry.Image, error) {
	var entries []rig.Entry
	for _, name := range theFour {
		data, err := os.ReadFile(programs()[name])
		if err != nil {
			return nil, err
		}
		entries = append(entries, rig.Entry{Path: "bin/" + name, Data: data})
	}
	return rig.NewImage(nil, entries...)
})

// newControlPlane writes the manifests of a control plane for the agent, and serves their images.
func newControlPlane(h *handover) *controlPlane {
	h.Helper()
	kubeadm := programs()["kubeadm"]
	if kubeadm == "" {
		h.Skip("MONOPOD_CONTROL_PLANE names no programs: make test-handover")
	}
	p := &controlPlane{handover: h, dir: filepath.Join(h.agent.Dir, "kubeadm/etc/kubernetes"), address: h.rig.Network.Gateway()}
	root := filepath.Join(h.agent.Dir, "kubeadm")
	check(h.T, os.MkdirAll(root, 0o755))
	version := strings.TrimSpace(p.output(kubeadm, "version", "-o", "short"))
	settings := strings.NewReplacer("ADDRESS", p.address, "NODE", rig.Node, "SOCKET", h.agent.Endpoint, "VERSION", version).Replace(kubeadmSettings)
	check(h.T, os.WriteFile(filepath.Join(root, "kubeadm.yaml"), []byte(settings), 0o600))

	image, err := planeImage()
	check(h.T, err)
	for _, ref := range strings.Fields(p.output(kubeadm, "config", "images", "list", "--config", filepath.Join(root, "kubeadm.yaml"))) {
		_, err := h.rig.Registry.Push(ref, image)
		check(h.T, err)
	}
	for _, phase := range []string{"certs all", "kubeconfig all", "etcd local", "control-plane all"} {
		p.output(kubeadm, append(strings.Fields("init phase "+phase), "--rootfs", root, "--config", "/kubeadm.yaml")...)
	}
	moved := strings.NewReplacer("/etc/kubernetes", p.dir, "/var/lib/etcd", filepath.Join(h.agent.Dir, "etcd"))
	for _, pod := range theFour {
		text, err := os.ReadFile(filepath.Join(p.dir, "manifests", pod+".yaml"))
		check(h.T, err)
		h.writeFile(pod+".yaml", moved.Replace(string(text)))
	}
	p.connect(filepath.Join(p.dir, "super-admin.conf"))
	return p
}

// kubeadmSettings put nothing on an address that something else of the machine may use.
const kubeadmSettings = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ADDRESS, bindPort: 16443}
nodeRegistration: {name: NODE, criSocket: "SOCKET"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
apiServer: {extraArgs: [{name: bind-address, value: ADDRESS}, {name: etcd-servers, value: "https://ADDRESS:2379"}]}
controllerManager: {extraArgs: [{name: bind-address, value: ADDRESS}]}
scheduler: {extraArgs: [{name: bind-address, value: ADDRESS}]}
etcd: {local: {extraArgs: [{name: listen-client-urls, value: "https://ADDRESS:2379"}, {name: listen-metrics-urls, value: "http://ADDRESS:2381"}]}}
`

func (p *controlPlane) output(program string, args ...string) string {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), program, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		p.Fatalf("%s: %v\n%s%s", cmd, err, out, said.String())
	}
	return string(out)
}

// connect reads from a kubeconfig where the API server is and what it takes to ask it.
func (p *controlPlane) connect(kubeconfig string) {
	p.Helper()
	text, err := os.ReadFile(kubeconfig)
	check(p.T, err)
	var c struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	check(p.T, yaml.Unmarshal(text, &c))
	if len(c.Clusters) != 1 || len(c.Users) != 1 {
		p.Fatalf("%s has %d clusters and %d users", kubeconfig, len(c.Clusters), len(c.Users))
	}
	own, err := tls.X509KeyPair(c.Users[0].User.Certificate, c.Users[0].User.Key)
	check(p.T, err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(c.Clusters[0].Cluster.CA)
	p.server = c.Clusters[0].Cluster.Server
	p.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: authorities}}}
}

// ask asks the API server; an answer that is JSON goes into into, unless that is nil.
func (p *controlPlane) ask(method, path, body string, into any) error {
	req, err := http.NewRequestWithContext(p.Context(), method, p.server+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s %s (%w)", method, path, resp.Status, text, err)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// serves waits until the API server is ready.
func (p *controlPlane) serves() {
	p.Helper()
	p.until("the API server is ready", func() error {
		if err := p.trouble(); err != nil {
			return rig.Final(err)
		}
		return p.ask("GET", "/readyz", "", nil)
	})
}

const configMaps = "/api/v1/namespaces/default/configmaps"

// kept is the object that the API server is to have.
const kept = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}}`

// create gives the API server an object.
func (p *controlPlane) create(path, object string) {
	p.Helper()
	p.until("the API server takes an object", func() error { // its namespace may be made after it is ready
		return p.ask("POST", path, object, nil)
	})
}

// guest returns the container of a pod whose namespace the cluster does not have at first.
func (p *controlPlane) guest() (c rig.Container) {
	p.Helper()
	p.until("the guest runs", func() error {
		all, err := p.rig.CRI.Containers(p.Context(), "guest")
		if err != nil {
			return err
		}
		if len(all) != 1 || all[0].State != "Running" {
			return fmt.Errorf("its containers are %+v", all)
		}
		c = all[0]
		return nil
	})
	return c
}

// has fails unless the API server still has the object.
func (p *controlPlane) has(who string) {
	p.Helper()
	p.serves()
	var m v1.ConfigMap
	if err := p.ask("GET", configMaps+"/kept", "", &m); err != nil || m.Data["a"] != "b" {
		p.Errorf("%s: the object is %v (%v)", who, m.Data, err)
	}
}

// up waits until the pods run and the API server is ready, and returns the containers.
func (p *controlPlane) up(pods ...string) map[string]rig.Container {
	p.Helper()
	p.until("all pods run", func() error {
		if err := p.trouble(); err != nil {
			return rig.Final(err)
		}
		for _, pod := range pods {
			if c := p.newest(pod); c.State != "Running" {
				return fmt.Errorf("%s is %+v", pod, c)
			}
		}
		return nil
	})
	p.serves()
	return p.all("")
}

// startMember starts a kubelet with the kubeconfig that kubeadm has made for the one of this node.
func (p *controlPlane) startMember(dir string) {
	p.Helper()
	p.startKubelet(dir, "--kubeconfig", filepath.Join(p.dir, "kubelet.conf"), "--node-ip", p.address)
}

// joined waits until the API server says that the node is ready, and that the containers of its pods
// are those, ready and as often restarted.
func (p *controlPlane) joined(containers map[string]rig.Container) {
	p.Helper()
	p.until("the cluster has the node and its pods", func() error {
		if err := p.trouble(); err != nil {
			return rig.Final(err)
		}
		var node v1.Node
		if err := p.ask("GET", "/api/v1/nodes/"+rig.Node, "", &node); err != nil {
			return err
		}
		isReady := func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue }
		if !slices.ContainsFunc(node.Status.Conditions, isReady) {
			return fmt.Errorf("the node is not ready: %+v", node.Status.Conditions)
		}
		for _, c := range containers {
			var pod v1.Pod
			if err := p.ask("GET", "/api/v1/namespaces/"+c.Namespace+"/pods/"+c.Pod, "", &pod); err != nil {
				return err
			}
			if err := mirrors(&pod, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// mirrors returns in what the mirror pod of the API server is not what runs.
func mirrors(pod *v1.Pod, c rig.Container) error {
	if pod.Annotations[v1.MirrorPodAnnotationKey] == "" || pod.Status.Phase != v1.PodRunning {
		return fmt.Errorf("pod %s is %s, with the annotations %v", pod.Name, pod.Status.Phase, pod.Annotations)
	}
	isShown := func(s v1.ContainerStatus) bool {
		return s.Name == c.Name && s.Ready && strings.HasSuffix(s.ContainerID, "://"+c.ID) && s.RestartCount == int32(c.Attempt)
	}
	if !slices.ContainsFunc(pod.Status.ContainerStatuses, isShown) {
		return fmt.Errorf("pod %s has the containers %+v, not %+v", pod.Name, pod.Status.ContainerStatuses, c)
	}
	return nil
}

func controlPlaneIntoAKubeletAndBack(h *handover) {
	p := newControlPlane(h)
	pods := append(slices.Clone(theFour), "web")
	h.write("web", plain["web"])
	h.writeFile("guest.yaml", strings.Replace(h.manifest("guest", sleeper), "namespace: "+h.ns, "namespace: guest", 1))
	h.start()
	before := p.up(pods...)
	guest := p.guest()
	p.create(configMaps, kept)

	dir := filepath.Join(h.agent.Dir, "export")
	out, err := h.command("export", "--for-kubelet", h.agent.Root, dir)
	h.Logf("monopod export:\n%s", out)
	check(h.T, err)
	check(h.T, h.agent.Stop())
	p.startMember(dir)
	p.joined(before)
	h.passed(dir)
	h.keeps("the kubelet", before)
	h.kept("the kubelet")
	p.has("the kubelet")
	p.create("/api/v1/namespaces", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "guest"}}`)
	p.joined(map[string]rig.Container{"guest": guest})
	h.crash("kube-scheduler")
	before = p.up(pods...)
	p.joined(before)
	h.stopKubelet()

	h.adopt()
	h.start()
	h.passed(h.agent.Manifests)
	h.keeps("monopod", before)
	if now := p.guest(); now != guest {
		h.Errorf("the pod of another namespace has the container %+v, and had %+v", now, guest)
	}
	h.kept("monopod")
	p.has("monopod")
	h.crash("kube-scheduler")
	p.has("monopod with another scheduler")
}

func controlPlaneFromAKubeletAndBack(h *handover) {
	p := newControlPlane(h)
	p.startMember(h.agent.Manifests)
	before := p.up(theFour...)
	p.joined(before)
	p.create(configMaps, kept)
	h.stopKubelet()

	h.adopt()
	h.start()
	h.passed(h.agent.Manifests)
	h.keeps("monopod", before)
	p.has("monopod")
	h.crash("kube-scheduler")
	before = p.up(theFour...)

	check(h.T, h.agent.Stop())
	p.startMember(h.agent.Manifests)
	p.joined(before)
	h.passed(h.agent.Manifests)
	h.keeps("the kubelet", before)
	p.has("the kubelet")
	h.stopKubelet()
	h.adopt()
	h.start()
	h.passed(h.agent.Manifests)
	h.keeps("monopod again", before)
	p.has("monopod again")
}
