package stats

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/cri/critest"
)

// asCRIO makes the recorded pod one of CRI-O with the container's id: its sandbox has no
// process, and conmon has a cgroup beside the container's, as with conmon_cgroup = "pod".
func asCRIO(t *testing.T, h Host, id, below string) {
	t.Helper()
	for from, to := range map[string]string{"cri-containerd-c1c1.scope": "crio-" + id + ".scope", "cri-containerd-5a5a.scope": "crio-5a5a"} {
		if err := os.Rename(filepath.Join(h.Cgroup, podV2, from), filepath.Join(h.Cgroup, podV2, to)); err != nil {
			t.Fatal(err)
		}
		put(t, h.Cgroup, filepath.Join(podV2, to, "cgroup.procs"), "")
	}
	put(t, h.Cgroup, filepath.Join(podV2, "crio-"+id+".scope", below, "cgroup.procs"), "4711\n4712\n")
	conmon := filepath.Join(podV2, "crio-conmon-"+id+".scope")
	put(t, h.Cgroup, conmon+"/cgroup.procs", "4699\n")
	put(t, h.Cgroup, conmon+"/memory.current", "1000000\n")
	put(t, h.Cgroup, conmon+"/memory.stat", "anon 1000000\n")
	for process, of := range map[string]string{"4711": "4700", "4699": "self"} {
		text, err := os.ReadFile(filepath.Join(h.Proc, of, "net/dev"))
		if err != nil {
			t.Fatal(err)
		}
		put(t, h.Proc, process+"/net/dev", string(text))
	}
}

func TestPodsOfCRIO(t *testing.T) {
	for below, name := range map[string]string{"": "runc", "container": "crun", "container/init.scope": "crun with a systemd in the container"} {
		for _, id := range []string{"c1c1", "e1e1"} { // before and after conmon
			t.Run(name+" "+id, func(t *testing.T) {
				h := plant(t, "v2")
				asCRIO(t, h, id, below)
				r := critest.New(t)
				c := looker(t, h, r, "systemd", parsePod(t, strings.Replace(webPod, "c1c1", id, 1)))
				s, err := c.look(t.Context(), false)
				if err != nil {
					t.Fatal(err)
				}
				p := s.Pods[0]
				links, _ := json.Marshal(p.Links)
				got := fmt.Sprintf("sandbox %s, %d processes, %d of the container with %d bytes, ", p.Sandbox, *p.Use.Processes, *p.Containers[0].Use.Processes, *p.Containers[0].Use.Memory)
				if got != "sandbox 5a5a, 3 processes, 2 of the container with 99000000 bytes, " || len(p.Links) != 1 || p.Links[0].Name != "eth0" {
					t.Error(got, string(links))
				}
				if n := r.Count("ListPodSandboxStats"); n != 0 {
					t.Errorf("the runtime was asked %d times", n)
				}
			})
		}
	}
}

// Where no process of a pod is found, the runtime tells of its network.
func TestAPodWithoutProcesses(t *testing.T) {
	h, r := plant(t, "v2"), critest.New(t)
	pod := parsePod(t, webPod)
	id := runPod(t, r, "web-n", string(pod.UID))
	asCRIO(t, h, id, "deep/deeper/deepest")
	for _, f := range []string{"crio-" + id + ".scope/deep", "crio-conmon-" + id + ".scope"} {
		if err := os.RemoveAll(filepath.Join(h.Cgroup, podV2, f)); err != nil {
			t.Fatal(err)
		}
	}
	pod.Status.ContainerStatuses[0].ContainerID = "cri-o://" + id
	s, err := looker(t, h, r, "systemd", pod).look(t.Context(), false)
	if err != nil || s.Trouble != nil {
		t.Fatal(err, s.Trouble)
	}
	if p := s.Pods[0]; len(p.Links) != 1 || p.Links[0].Name != "eth0" || *p.Containers[0].Use.Memory != 99000000 {
		t.Errorf("links %+v, container %+v", p.Links, p.Containers[0].Use)
	}
}
