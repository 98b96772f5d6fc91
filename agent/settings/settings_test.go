package settings

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/cpus"
	"monopod/agent/managed"
	"monopod/agent/pinning"
	"monopod/cri"
	"monopod/manifests/signature"
)

func TestFailSwapOn(t *testing.T) {
	for text, want := range map[string]string{"Filename Type\n": "", "Filename Type\n/dev/sda2 partition\n": "the machine has swap"} {
		path := filepath.Join(t.TempDir(), "swaps")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := checkSwap(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// With containerd and CRI-O on a machine, the agent that starts while the one is down that has its pods
// would start them in the other one, too.
func TestTheRuntimeOfThisBootIsNotExchangedForAnother(t *testing.T) {
	c := config.Default()
	c.Root = t.TempDir()
	for used, want := range map[string][]string{
		"":                                  cri.WellKnown(),
		cri.WellKnown()[1]:                  {cri.WellKnown()[1]},
		cri.WellKnown()[0]:                  {cri.WellKnown()[0]},
		"unix:///run/chosen/for-a-day.sock": cri.WellKnown(),
	} {
		if err := (&checkpoint.Root{Dir: c.Root}).KeepRuntime(used, checkpoint.ReadBoot()); err != nil {
			t.Fatal(err)
		}
		if got := Endpoints(c); !slices.Equal(got, want) {
			t.Errorf("used %q: %q, want %q", used, got, want)
		}
	}
	c.Endpoint = "unix:///run/given.sock"
	if got := Endpoints(c); len(got) != 1 || got[0] != c.Endpoint {
		t.Errorf("what is given does not win: %q", got)
	}
}

func TestCredentialsInAHeaderAreNotSentUnencrypted(t *testing.T) {
	const refused = "staticPodURLHeader: the Authorization header would go to "
	for _, row := range []struct{ url, header, want string }{
		{"http://example.org/pods", "Authorization", refused + "example.org unencrypted"},
		{"http://example.org/pods", "authorization", refused},
		{"http://example.org/pods", "X-Site", ""},
		{"https://example.org/pods", "Authorization", ""},
		{"http://127.0.0.1:8080/pods", "Authorization", ""},
	} {
		c := config.Default()
		c.NodeName, c.Root, c.ManifestURL, c.ManifestURLHeader = "n", t.TempDir(), row.url, map[string]config.Header{row.header: {"Basic c2VjcmV0"}}
		_, err := Complete(c, false)
		if (err == nil) != (row.want == "") || err != nil && !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s with %s: %v, want %q", row.url, row.header, err, row.want)
		}
		if err != nil && strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
}

func TestThePublicKeyReachesWhatAsksTheURL(t *testing.T) {
	key, _, err := signature.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	public := key.Public().(ed25519.PublicKey)
	s := Fetch(config.Config{NodeName: "edge7", ManifestURLPublicKey: signature.Text(public)}, nil)
	if !public.Equal(s.PublicKey) || s.Node != "edge7" {
		t.Errorf("%x for %q", s.PublicKey, s.Node)
	}
}

func TestTheURLNamesTheNodeAsItIsCalled(t *testing.T) {
	c := config.Default()
	c.NodeName, c.Root, c.ManifestURL = " Edge7", t.TempDir(), "http://h/{node}.yaml"
	got, err := Complete(c, false)
	if err != nil || got.ManifestURL != "http://h/edge7.yaml" || Fetch(got, nil).URL != got.ManifestURL {
		t.Errorf("%q, %v", got.ManifestURL, err)
	}
}

func TestReservedCPUsCountInPlaceOfAmounts(t *testing.T) {
	amounts := func(pairs ...string) v1.ResourceList {
		list := v1.ResourceList{}
		for k := 0; k < len(pairs); k += 2 {
			list[v1.ResourceName(pairs[k])] = resource.MustParse(pairs[k+1])
		}
		return list
	}
	for _, row := range []struct {
		name        string
		system, own v1.ResourceList
		list        string
		cpu         string // reserved; "": none
	}{
		{"nothing", nil, nil, "", ""},
		{"amounts are summed", amounts("cpu", "500m"), amounts("cpu", "1", "memory", "1Gi"), "", "1500m"},
		{"one amount", amounts("memory", "1Gi"), amounts("cpu", "1"), "", "1"},
		{"a list", nil, nil, "0-1,4", "3"},
		{"a list in place of amounts", amounts("cpu", "500m", "memory", "1Gi"), amounts("cpu", "7", "memory", "1Gi"), "0", "1"},
	} {
		c := config.Default()
		c.SystemReserved, c.KubeReserved, c.ReservedCPUs, c.CPUPolicy = row.system, row.own, row.list, "static"
		s, got := Pinning(c, false).Policy, ""
		if s.Reserved != nil {
			got = s.Reserved.String()
		}
		if got != row.cpu || s.Listed.String() != row.list || s.Policy != "static" {
			t.Errorf("%s: %s, %s", row.name, got, s.Listed)
		}
		r := Node(c).Reserved
		sum := r.System.Cpu().DeepCopy()
		sum.Add(*r.Agent.Cpu())
		if want := resource.MustParse(cmp.Or(row.cpu, "0")); sum.Cmp(want) != 0 || r.Agent.Memory().Cmp(*row.own.Memory()) != 0 {
			t.Errorf("%s: the node reserves %v", row.name, r)
		}
		if row.own != nil && row.list != "" && c.KubeReserved.Cpu().IsZero() {
			t.Errorf("%s: the settings were changed", row.name)
		}
	}
}

// A kubelet does not start either.
func TestOptionsOfNoPolicyAreRefused(t *testing.T) {
	for policy, want := range map[string]string{cpus.Static: "", cpus.None: "cpuManagerPolicyOptions mean nothing to cpuManagerPolicy none: leave them out, or choose static"} {
		for _, once := range []bool{false, true} {
			c := config.Default()
			c.Manifests, c.NodeName, c.Root = []string{t.TempDir()}, "n", t.TempDir()
			c.CPUPolicy, c.CPUOptions = policy, map[string]string{"full-pcpus-only": "true"}
			_, err := Complete(c, once)
			if text := fmt.Sprint(err); err == nil && want != "" || err != nil && text != want {
				t.Errorf("policy %s, once %v: %v", policy, once, err)
			}
		}
	}
}

func TestFoldersThatOverlapAreRefused(t *testing.T) {
	c := config.Default()
	dir := t.TempDir()
	c.Manifests, c.NodeName, c.Root = []string{dir, dir + "/local"}, "n", t.TempDir()
	_, err := Complete(c, false)
	if want := "--manifests: " + dir + "/local is in " + dir + ": folders of manifests stand beside each other"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAnAgentOfOneRunHasNoOtherEndpoints(t *testing.T) {
	c := config.Default()
	c.NodeName, c.Root, c.PodResources, c.HealthzPort = "n", t.TempDir(), true, 1
	got, err := Complete(c, true)
	if err != nil || got.PodResources || got.HealthzPort != 0 || got.Listen+got.Socket != "" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestPinningIsAsTheSettingsSay(t *testing.T) {
	c := config.Default()
	c.Root, c.CPUPolicy, c.CPUOptions, c.CPUEvery, c.ReservedCPUs = "/r", cpus.Static, map[string]string{"full-pcpus-only": "true"}, time.Minute, "0,8"
	two := resource.MustParse("2")
	want := pinning.Settings{Policy: cpus.Settings{Policy: cpus.Static, Options: c.CPUOptions, Listed: cpus.NewSet(0, 8), Reserved: &two},
		Every: time.Minute, System: "/sys/devices/system", Path: "/r/cpu_manager_state"}
	if got := Pinning(c, false); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAnAgentOfOneRunPinsNothing(t *testing.T) {
	c := config.Default()
	c.CPUPolicy = "static"
	if got := Pinning(c, true).Policy.Policy; got != "none" {
		t.Errorf("its policy is %s", got)
	}
}

func TestWhoIsHeldToWhatIsReserved(t *testing.T) {
	c := config.Default()
	c.SystemReserved = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi")}
	c.KubeReserved = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("2Gi")}
	c.SystemReservedCgroup, c.KubeReservedCgroup = "/s", "/k"
	for _, row := range []struct {
		enforce []string
		want    string
	}{
		{[]string{"pods"}, ""},
		{[]string{"none"}, ""},
		{[]string{"pods", "system-reserved"}, "systemReservedCgroup system-reserved /s 1 1Gi"},
		{[]string{"kube-reserved-compressible", "system-reserved"}, "systemReservedCgroup system-reserved /s 1 1Gi|kubeReservedCgroup kube-reserved-compressible /k 2 0"},
	} {
		c.Enforce = row.enforce
		var got []string
		for _, h := range Node(c).Reserved.Held {
			got = append(got, strings.Join([]string{h.Setting, h.Level, h.Cgroup, h.Amounts.Cpu().String(), h.Amounts.Memory().String()}, " "))
		}
		if text := strings.Join(got, "|"); text != row.want {
			t.Errorf("%v: %s, want %s", row.enforce, text, row.want)
		}
	}
}

// It is promised that the subnet of pods overlaps no "name server of the machine": with systemd-resolved those of pods are
// in another file than /etc/resolv.conf.
func TestTheManagedRuntimeKnowsTheNameServersOfPods(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("nameserver 10.9.8.7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := Managed(config.Config{Root: t.TempDir(), ResolvConf: path}, false)
	used, err := managed.UsedPrefixes(s.Resolv)
	if err != nil || !slices.Contains(used, netip.MustParsePrefix("10.9.8.7/32")) {
		t.Errorf("pods may get the subnet of their name server: %v (%v)", used, err)
	}
}
