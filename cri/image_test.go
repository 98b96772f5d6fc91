package cri

import (
	"reflect"
	"testing"
)

func TestWhatRuntimesReportOfTheirSettings(t *testing.T) {
	for _, row := range []struct {
		name, config string
		want         Info
	}{
		{"containerd 1.6", `{"sandboxImage": "pause:1", "cni": {"confDir": "/c", "binDir": "/b"}}`, Info{SandboxImage: "pause:1", CNIConf: "/c", CNIBin: []string{"/b"}}},
		{"containerd 1.7", `{"cni": {"confDir": "/c"}, "cdiSpecDirs": ["/etc/cdi"], "enableCDI": false}`, Info{CNIConf: "/c"}},
		{"containerd 1.7 with CDI", `{"cni": {"confDir": "/c"}, "cdiSpecDirs": ["/etc/cdi"], "enableCDI": true}`, Info{CNIConf: "/c", CDI: true}},
		{"containerd 2", `{"cni": {"confDir": "/c", "binDirs": ["/a", "/b"]}, "cdiSpecDirs": ["/etc/cdi"]}`, Info{CNIConf: "/c", CNIBin: []string{"/a", "/b"}, CDI: true}},
		{"CRI-O", `{"sandboxImage": "pause:1"}`, Info{SandboxImage: "pause:1"}},
		{"CRI-O 1.33", `{"crio": {"EnablePodEvents": true, "DefaultRuntime": "crun", "Runtimes": {"crun": {"RuntimePath": "/c"}, "runc": {"RuntimePath": "/r"}}}}`,
			Info{CRIO: &CRIOInfo{PodEvents: true, RuntimePath: "/c"}}},
		{"another format", `sandboxImage = "pause:1"`, Info{}},
		{"nothing", "", Info{}},
	} {
		if got := infoOf(row.config); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, not %+v", row.name, got, row.want)
		}
	}
}
