package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/config"
	"monopod/agent/podspec"
	"monopod/agent/volume"
	"monopod/cri/critest"
)

// named runs a test of pods that are named to each other.
func named(t *testing.T, test func(*rig)) { liveWith(t, namesPods, test) }

func namesPods(r *rig) {
	r.configure = func(c *config.Config) { c.PodHosts = true }
	r.machine = func(h *podspec.Host) { h.HostIPs, h.HostsFile = []string{"192.0.2.7"}, []byte("127.0.0.1 machine\n") }
}

// hostsFile returns the path of a pod's hosts file.
func (r *rig) hostsFile(key string) string {
	r.Helper()
	p, ok := r.store.Pod(key)
	if !ok {
		r.Fatalf("no status of %s", key)
	}
	return volume.HostsPath(r.dir, string(p.UID))
}

// ip returns the address that is reported of a pod.
func (r *rig) ip(key string) string {
	r.Helper()
	ip := r.status(key).PodIP
	if ip == "" {
		r.Fatalf("%s has no address", key)
	}
	return ip
}

// sectionOf returns the lines of a hosts file that name pods.
func sectionOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	noErr(t, err)
	_, lines, _ := strings.Cut(string(b), "\n\n# Pods of this machine, kept up to date by monopod.\n")
	lines, _, _ = strings.Cut(lines, "# End of the pods of this machine.\n")
	return lines
}

// sees checks the lines that name pods in the hosts file of a pod.
func (r *rig) sees(key string, want ...string) {
	r.Helper()
	text := ""
	for _, line := range want {
		text += line + "\n"
	}
	if got := sectionOf(r.T, r.hostsFile(key)); got != text {
		r.Errorf("%s sees\n%swant\n%s", key, got, text)
	}
}

func TestPodsFindEachOtherByName(t *testing.T) {
	named(t, func(r *rig) {
		other := strings.Replace(manifest("db", "img:1"), "name: db", "name: db, namespace: other", 1)
		r.want(manifest("web", "img:1"), manifest("db", "img:1"), other, manifest("host", "img:1", "hostNetwork: true"))
		r.after(time.Second)
		db, there, web := r.ip("default/db-n"), r.ip("other/db-n"), r.ip("default/web-n")
		shared := []string{"192.0.2.7\thost host.default", web + "\tweb web.default"}
		r.sees("default/web-n", append([]string{db + "\tdb db.default"}, append(slices.Clone(shared), there+"\tdb.other")...)...)
		r.sees("default/host-n", append([]string{db + "\tdb db.default"}, append(slices.Clone(shared), there+"\tdb.other")...)...)
		r.sees("other/db-n", append([]string{db + "\tdb.default"}, append(slices.Clone(shared), there+"\tdb db.other")...)...)
		for key, head := range map[string]string{
			"default/web-n":  "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n",
			"default/host-n": "# Kubernetes-managed hosts file (host network).\n127.0.0.1 machine\n\n# Pods of",
		} {
			if b, err := os.ReadFile(r.hostsFile(key)); err != nil || !strings.HasPrefix(string(b), head) {
				r.Errorf("%s has %s: %v", key, b, err)
			}
		}
	})
}

func TestPodsAreNotNamedUnlessAsked(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("db", "img:1"))
		r.after(time.Minute)
		b, err := os.ReadFile(r.hostsFile("default/web-n"))
		if want := "fe00::2\tip6-allrouters\n" + r.ip("default/web-n") + "\tweb-n\n"; err != nil || !strings.HasSuffix(string(b), want) {
			r.Errorf("it ends otherwise: %s", b)
		}
	})
}

// What a dependent waited for, and its own name, it finds from its first instruction on.
func TestADependentFindsWhatItWaitedFor(t *testing.T) {
	var seen []string
	liveWith(t, func(r *rig) {
		namesPods(r)
		r.mangle = func(args, reply any) {
			q, ok := args.(*rt.CreateContainerRequest)
			if !ok || reply != nil || q.GetSandboxConfig().GetMetadata().GetName() != "web-n" {
				return
			}
			for _, m := range q.GetConfig().GetMounts() {
				if m.ContainerPath == "/etc/hosts" {
					seen = append(seen, sectionOf(r.T, m.HostPath))
				}
			}
		}
	}, func(r *rig) {
		slow := r.Fault(critest.On("RunPodSandbox").Of("db-n").Hang())
		r.want(after("web", "db", "img:1"), manifest("db", "img:1"))
		r.after(time.Minute)
		slow.Release()
		r.settle()
		r.expect("default/db-n/c", "default/web-n/c")
		want := r.ip("default/db-n") + "\tdb db.default\n" + r.ip("default/web-n") + "\tweb web.default\n"
		if len(seen) != 1 || seen[0] != want {
			r.Errorf("it saw %q, want %q", seen, want)
		}
	})
}

// Containers have the file itself mounted, and may have added lines.
func TestNamesFollowSandboxesInPlace(t *testing.T) {
	named(t, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("db", "img:1"))
		r.after(time.Second)
		path, before := r.hostsFile("default/web-n"), r.ip("default/db-n")
		held, err := os.OpenFile(path, os.O_APPEND|os.O_RDWR, 0)
		noErr(r.T, err)
		defer held.Close()
		_, err = held.WriteString("192.0.2.99\tmine\n")
		noErr(r.T, err)
		r.KillSandbox("db-n")
		r.after(time.Minute)
		db, web := r.ip("default/db-n"), r.ip("default/web-n")
		if db == before {
			r.Fatal("the address is the same: the test proves nothing")
		}
		r.sees("default/web-n", db+"\tdb db.default", web+"\tweb web.default")
		r.sees("default/db-n", db+"\tdb db.default", web+"\tweb web.default")
		b := make([]byte, 4096)
		n, _ := held.ReadAt(b, 0)
		if text := string(b[:n]); !strings.HasSuffix(text, "# End of the pods of this machine.\n192.0.2.99\tmine\n") || !strings.Contains(text, db+"\tdb") {
			r.Errorf("who has it open sees\n%s", text)
		}
		if rest, _ := filepath.Glob(filepath.Join(r.dir, "pods/*/*.next")); len(rest) > 0 {
			r.Errorf("left: %s", rest)
		}
	})
}

// The file that the others of the pod have mounted stays theirs when one restarts.
func TestARestartedContainerKeepsTheFileOfTheOthers(t *testing.T) {
	named(t, func(r *rig) {
		two := "apiVersion: v1\nkind: Pod\nmetadata: {name: two}\nspec: {containers: [{name: a, image: 'img:1'}, {name: b, image: 'img:1'}]}\n"
		r.want(two)
		r.after(time.Second)
		held, err := os.OpenFile(r.hostsFile("default/two-n"), os.O_APPEND|os.O_RDWR, 0)
		noErr(r.T, err)
		defer held.Close()
		_, err = held.WriteString("192.0.2.99\tmine\n")
		noErr(r.T, err)
		r.Exit("two-n/a", 1)
		r.after(time.Minute)
		r.expect("default/two-n/a", "default/two-n/b")
		now, err := os.ReadFile(r.hostsFile("default/two-n"))
		noErr(r.T, err)
		b := make([]byte, 4096)
		n, _ := held.ReadAt(b, 0)
		if string(b[:n]) != string(now) || strings.Contains(string(now), "mine") {
			r.Errorf("it is\n%sand the other container sees\n%s", now, b[:n])
		}
	})
}

func TestNamesGoWithTheirPods(t *testing.T) {
	named(t, func(r *rig) {
		job := manifest("job", "img:1", "restartPolicy: Never")
		r.want(manifest("web", "img:1"), job, manifest("db", "img:1"))
		r.after(time.Second)
		db, web := r.ip("default/db-n")+"\tdb db.default", r.ip("default/web-n")+"\tweb web.default"
		r.sees("default/web-n", db, r.ip("default/job-n")+"\tjob job.default", web)
		r.Exit("job-n/c", 0)
		r.after(time.Second)
		r.sees("default/web-n", db, web)
		r.want(manifest("web", "img:1"), job)
		r.after(time.Minute)
		r.sees("default/web-n", web)
	})
}

// A status that changes in other ways, and time that passes, write nothing.
func TestHostsFilesAreWrittenForChangesOnly(t *testing.T) {
	named(t, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("db", "img:1"))
		r.after(time.Second)
		path := r.hostsFile("default/web-n")
		noErr(r.T, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
		for range 3 {
			r.Exit("db-n/c", 1)
			r.after(10 * time.Minute)
		}
		if i, err := os.Stat(path); err != nil || i.ModTime().Unix() != 1 {
			r.Errorf("it was written: %v", err)
		}
		r.KillSandbox("db-n")
		r.after(time.Minute)
		if i, err := os.Stat(path); err != nil || i.ModTime().Unix() == 1 {
			r.Errorf("it was not written: %v", err)
		}
	})
}

func TestARestartedAgentForgetsNoName(t *testing.T) {
	named(t, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("db", "img:1"))
		r.after(time.Second)
		path := r.hostsFile("default/web-n")
		r.kill()
		noErr(r.T, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
		r.start()
		r.want(manifest("web", "img:1"), manifest("db", "img:1"))
		r.after(time.Minute)
		if i, err := os.Stat(path); err != nil || i.ModTime().Unix() != 1 {
			r.Errorf("it was written: %v", err)
		}
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.sees("default/web-n", r.ip("default/web-n")+"\tweb web.default")
	})
}

func TestNamesComeAndGoWithTheirSetting(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("db", "img:1"))
		r.after(time.Second)
		before, err := os.ReadFile(r.hostsFile("default/web-n"))
		noErr(r.T, err)
		set := func(on bool) {
			r.change(func(c *config.Config) { c.PodHosts = on })
			r.hosts.Wake()
			r.after(time.Second)
		}
		set(true)
		both := []string{r.ip("default/db-n") + "\tdb db.default", r.ip("default/web-n") + "\tweb web.default"}
		r.sees("default/web-n", both...)
		set(false)
		if now, err := os.ReadFile(r.hostsFile("default/web-n")); err != nil || string(now) != string(before) {
			r.Errorf("it is\n%s, was\n%s: %v", now, before, err)
		}
		set(true)
		r.sees("default/db-n", both...)
		path := r.hostsFile("default/web-n")
		r.kill()
		r.start() // an agent that does not name pods takes away what another wrote
		r.after(time.Second)
		if now, err := os.ReadFile(path); err != nil || string(now) != string(before) {
			r.Errorf("the next agent: it is\n%s, was\n%s: %v", now, before, err)
		}
	})
}

func TestPodsOfOneRunFindEachOther(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	r.AddImage("img:1")
	o := runOnce(t, r, root, manifest("db", "img:1"), after("job", "db", "img:1", "restartPolicy: Never"))
	o.await("default/job-n", v1.PodRunning)
	job, _ := o.Store().Pod("default/job-n")
	db, _ := o.Store().Pod("default/db-n")
	if got := sectionOf(t, volume.HostsPath(root, string(job.UID))); !strings.HasPrefix(got, db.Status.PodIP+"\tdb db.default\n") {
		t.Errorf("it sees %q", got)
	}
	o.Retire()
	o.awaitGone()
	noErr(t, o.leaves())
}
