//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/e2e/rig"
)

// planeAddress is the API server's: kubeadm refuses 127.0.0.1.
const planeAddress = "192.0.2.6"

// controlPlane is the one that kubeadm sets up, with a kubelet that joins it. Its pods are those of
// kubeadm and use its ports.
type controlPlane struct {
	*handover
	dir        string // in which kubeadm saw a machine of its own
	kubeconfig string // of the kubelet
	api        *http.Client
}

// components are the programs of a control plane and the versions of their images.
var components = map[string]string{
	"etcd": "3.6.8-0", "kube-apiserver": "v1.36.3", "kube-controller-manager": "v1.36.3", "kube-scheduler": "v1.36.3",
}

// handsOverAControlPlane moves a control plane of kubeadm from the kubelet that is its node to monopod
// and back: a join is what that kubelet does each time.
func handsOverAControlPlane(h *handover) {
	p := &controlPlane{handover: h, dir: filepath.Join(h.agent.Dir, "plane")}
	p.pushImages()
	p.init()
	h.startKubeletOf(h.agent.Manifests, p.kubeconfig)
	p.until("the node has its control plane", p.joined)
	before := p.all("Running")
	p.post("/api/v1/namespaces/default/configmaps", v1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"by": "kubelet"}})
	h.stopKubelet()

	h.adopt()
	h.start()
	h.passed(h.agent.Manifests)
	p.keepsAll("monopod", before)
	p.crash("kube-scheduler")
	before = p.all("Running")

	check(h.T, h.agent.Stop())
	h.startKubeletOf(h.agent.Manifests, p.kubeconfig)
	h.passed(h.agent.Manifests)
	p.until("the node has its control plane again", p.joined)
	p.keepsAll("the kubelet", before)
	h.stopKubelet()

	h.adopt()
	h.start()
	h.passed(h.agent.Manifests)
	p.keepsAll("monopod again", before)
}

// pushImages gives the registry the images that kubeadm names, of the programs that make test-handover
// has built.
func (p *controlPlane) pushImages() {
	p.Helper()
	for _, name := range slices.Sorted(maps.Keys(components)) {
		tag := components[name]
		version := strings.TrimPrefix(strings.TrimSuffix(tag, "-0"), "v")
		program, err := os.ReadFile(filepath.Join(os.Getenv("MONOPOD_CACHE"), name+"-"+version, name))
		check(p.T, err)
		image, err := rig.NewImage(nil, rig.Entry{Path: "bin/" + name, Data: program})
		check(p.T, err)
		_, err = p.rig.Registry.Push("registry.k8s.io/"+name+":"+tag, image)
		check(p.T, err)
	}
	pause, err := rig.NewImage(nil)
	check(p.T, err)
	_, err = p.rig.Registry.Push("registry.k8s.io/pause:3.10", pause)
	check(p.T, err)
}

// init has kubeadm write certificates, kubeconfigs and manifests.
func (p *controlPlane) init() {
	p.Helper()
	address := func(verb string) error {
		return exec.Command("ip", "addr", verb, planeAddress+"/32", "dev", "lo").Run()
	}
	check(p.T, address("add"))
	p.Cleanup(func() {
		if err := address("del"); err != nil {
			p.Errorf("remove the API server's address: %v", err)
		}
	})
	const file = "/kubeadm.yaml"
	check(p.T, os.MkdirAll(p.dir, 0o755))
	check(p.T, os.WriteFile(p.dir+file, []byte(`apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: `+planeAddress+`}
nodeRegistration: {name: `+rig.Node+`, criSocket: '`+p.agent.Endpoint+`'}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
`), 0o600))
	kubeadm := filepath.Join(os.Getenv("MONOPOD_CACHE"), "kubeadm-1.36.3", "kubeadm")
	for _, phase := range []string{"certs all", "kubeconfig all", "etcd local", "control-plane all"} {
		cmd := exec.CommandContext(p.Context(), kubeadm, append(strings.Fields("init phase "+phase), "--rootfs", p.dir, "--config", file)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			p.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	etc := p.dir + "/etc/kubernetes"
	p.kubeconfig = etc + "/kubelet.conf"
	p.connect(etc + "/super-admin.conf")
	check(p.T, os.MkdirAll(p.agent.Manifests, 0o755))
	for name := range components {
		text, err := os.ReadFile(etc + "/manifests/" + name + ".yaml")
		check(p.T, err)
		moved := strings.NewReplacer("/etc/kubernetes", etc, "/var/lib/etcd", p.dir+"/var/lib/etcd").Replace(string(text))
		check(p.T, os.WriteFile(filepath.Join(p.agent.Manifests, name+".yaml"), []byte(moved), 0o600))
	}
}

// connect makes the client of the API server by a kubeconfig.
func (p *controlPlane) connect(kubeconfig string) {
	p.Helper()
	text, err := os.ReadFile(kubeconfig)
	check(p.T, err)
	var c struct {
		Clusters []struct {
			Cluster struct {
				CA []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			}
		}
	}
	check(p.T, yaml.Unmarshal(text, &c))
	pair, err := tls.X509KeyPair(c.Users[0].User.Certificate, c.Users[0].User.Key)
	check(p.T, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.Clusters[0].Cluster.CA) {
		p.Fatal("the kubeconfig has no certificate of the cluster")
	}
	p.api = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}}}
	p.Cleanup(p.api.CloseIdleConnections)
}

// ask sends a request to the API server, and decodes its answer.
func (p *controlPlane) ask(method, path string, body io.Reader, into any) error {
	req, err := http.NewRequestWithContext(p.Context(), method, "https://"+planeAddress+":6443"+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.api.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (p *controlPlane) post(path string, object any) {
	p.Helper()
	body, err := json.Marshal(object)
	check(p.T, err)
	check(p.T, p.ask("POST", path, strings.NewReader(string(body)), &struct{}{}))
}

// joined returns nil when the node is ready in the cluster, and the API server shows its control plane
// as the runtime has it, all of it ready.
func (p *controlPlane) joined() error {
	if err := p.kubelet.Ended(); err != nil {
		return rig.Final(err)
	}
	var node v1.Node
	var pods v1.PodList
	if err := errors.Join(p.ask("GET", "/api/v1/nodes/"+rig.Node, nil, &node), p.ask("GET", "/api/v1/namespaces/kube-system/pods", nil, &pods)); err != nil {
		return err
	}
	if k := slices.IndexFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady }); k < 0 || node.Status.Conditions[k].Status != v1.ConditionTrue {
		return fmt.Errorf("the node is %+v", node.Status.Conditions)
	}
	ready := 0
	for _, pod := range pods.Items {
		name := strings.TrimSuffix(pod.Name, "-"+rig.Node)
		if components[name] == "" {
			continue
		}
		c := p.newest(name)
		if len(pod.Status.ContainerStatuses) != 1 || !pod.Status.ContainerStatuses[0].Ready || !strings.HasSuffix(pod.Status.ContainerStatuses[0].ContainerID, c.ID) ||
			pod.Status.ContainerStatuses[0].RestartCount != int32(c.Attempt) {
			return fmt.Errorf("pod %s is %+v, its container %+v", pod.Name, pod.Status, c)
		}
		ready++
	}
	if ready != len(components) {
		return fmt.Errorf("%d pods of the control plane are there", ready)
	}
	return nil
}

// keepsAll fails unless the containers are those of before, and the API server serves what it was given.
func (p *controlPlane) keepsAll(who string, before map[string]rig.Container) {
	p.Helper()
	if now := p.all("Running"); !maps.Equal(now, before) {
		p.Errorf("%s: the containers are %+v, and were %+v", who, now, before)
	}
	var kept v1.ConfigMap
	if err := p.ask("GET", "/api/v1/namespaces/default/configmaps/kept", nil, &kept); err != nil || kept.Data["by"] != "kubelet" {
		p.Errorf("%s: the object is %+v (%v)", who, kept.Data, err)
	}
}
