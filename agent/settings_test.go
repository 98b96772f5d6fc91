package agent

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/config"
	"monopod/agent/image"
	"monopod/agent/logrotate"
	"monopod/agent/node"
	"monopod/agent/plan"
	"monopod/agent/server"
	"monopod/agent/settings"
	"monopod/cgroups"
	"monopod/manifests"
)

// What the file says reaches the pods.
func TestSettingsReachPods(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "podNameSuffix: false\nfieldValidation: Ignore\nseccompDefault: true\npodPidsLimit: 7\ncpuCFSQuotaPeriod: 5ms\n" +
		"clusterDNS: [10.0.0.9]\nresolvConf: ''\nruntimeClasses: {gvisor: runsc}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	base := config.Default()
	base.NodeName, base.Root = "n", t.TempDir()
	cfg, _, err := config.ReadFile(path, base)
	if err != nil {
		t.Fatal(err)
	}
	pods, problems := manifests.Decode("/m/a.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {zebra: 1, runtimeClassName: gvisor, containers: [{name: c, image: i}]}\n"), settings.Manifests(cfg))
	if len(pods) != 1 || pods[0].Name != "a" {
		t.Fatalf("pods %v, problems %v", pods, problems)
	}
	m, err := node.New(settings.Node(cfg), nil, "i", slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	n := m.Now()
	if !n.SeccompDefault || n.PodPids != 7 || n.CFSPeriod != 5000 || len(n.ClusterDNS) != 1 || len(n.Resolv.Servers) == 0 {
		t.Errorf("%+v", n)
	}
}

// What evictionHard says is kept from pods and reported, each as far as it can be.
func TestThresholdsReachTheNode(t *testing.T) {
	amount := func(text string) node.Threshold { return node.Threshold{Amount: resource.MustParse(text)} }
	for _, row := range []struct {
		name     string
		in       map[string]string
		free     map[v1.ResourceName]node.Threshold
		pressure map[string]node.Threshold
	}{
		{"nothing", nil, nil, node.DefaultPressure()},
		{"amounts and shares", map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"},
			map[v1.ResourceName]node.Threshold{"memory": amount("100Mi"), "ephemeral-storage": {Share: 0.1}},
			map[string]node.Threshold{"memory.available": amount("100Mi"), "nodefs.available": {Share: 0.1}}},
		{"none", map[string]string{"memory.available": "0%", "nodefs.available": "100%"}, nil, nil},
		{"one that is only reported", map[string]string{"imagefs.inodesFree": "2%"}, nil, map[string]node.Threshold{"imagefs.inodesFree": {Share: 0.02}}},
		{"one that is of no use", map[string]string{"containerfs.available": "2%"}, nil, nil},
	} {
		free, pressure := settings.Thresholds(row.in)
		if !equality.Semantic.DeepEqual(free, row.free) || !equality.Semantic.DeepEqual(pressure, row.pressure) {
			t.Errorf("%s: kept %v, reported %v", row.name, free, pressure)
		}
	}
}

// The settings of who may ask are those of crypto/tls.
func TestAccessHasTheSettings(t *testing.T) {
	c := config.Default()
	c.TLSCert, c.TLSMinVersion, c.TLSCiphers = "/c", "VersionTLS13", []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}
	want := server.Access{Cert: "/c", MinVersion: tls.VersionTLS13, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}
	if got := settings.Access(c); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := settings.Access(config.Default()); got.MinVersion != tls.VersionTLS12 || got.CipherSuites != nil {
		t.Errorf("by default %+v", got)
	}
}

// Each part has the default that the settings have, for those who say nothing.
func TestPartsHaveTheDefaultsOfTheSettings(t *testing.T) {
	c := config.Default()
	if got, want := settings.Logs(c), (logrotate.Config{}).Complete(); got != want {
		t.Errorf("logs: %+v, want %+v", got, want)
	}
	if got, want := settings.Images(c).Complete(), (image.Limits{}).Complete(); got != want {
		t.Errorf("images: %+v, want %+v", got, want)
	}
	if got, want := settings.Plans(c).BackOff, (plan.BackOff{}).Or(plan.BackOffFirst, plan.BackOffMax); got != want {
		t.Errorf("back-off: %+v, want %+v", got, want)
	}
	if s := settings.Node(c); s.PodsOn(4) != (node.NodeSettings{}).PodsOn(4) || c.ImagePulls != image.Parallel || s.CFSPeriod.Microseconds() != cgroups.DefaultPeriod {
		t.Errorf("the node: %+v", s)
	}
}
