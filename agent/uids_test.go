package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/cri/critest"
)

// pinned is a manifest with the uid u-1, a volume, a hook and a grace.
func pinned(name string, extra ...string) string {
	m := manifest(name, "img:1", append([]string{"terminationGracePeriodSeconds: 20", "volumes: [{name: v, emptyDir: {}}]"}, extra...)...)
	m = strings.Replace(m, "{name: "+name, "{name: "+name+", uid: u-1", 1)
	return strings.Replace(m, `"img:1"}`, `"img:1", volumeMounts: [{name: v, mountPath: /v}]}`, 1)
}

// scribble leaves a mark in the volume of the pod with the uid.
func (r *rig) scribble(uid string) (path string) {
	r.Helper()
	path = filepath.Join(r.dir, "pods", uid, "volumes/kubernetes.io~empty-dir/v/mark")
	if err := os.WriteFile(path, []byte("of the old pod"), 0o600); err != nil {
		r.Fatal(err)
	}
	return path
}

// wantUIDInUse checks that a pod waits for the uid of another one.
func (r *rig) wantUIDInUse(key, other string) {
	r.Helper()
	r.wantRefused(key, "UIDInUse")
	if st := r.status(key); !strings.Contains(st.Message, "pod "+other) {
		r.Errorf("%s waits and says %q; want %s named", key, st.Message, other)
	}
}

// owns checks that the pod runs alone, with its own checkpoint and volume.
func (r *rig) owns(key, uid, mark string) {
	r.Helper()
	r.expect(key + "/c")
	for _, c := range r.Containers() {
		if c.Namespace+"/"+c.Pod != key {
			r.Errorf("left in the runtime: %s/%s", c.Namespace, c.Pod)
		}
	}
	c := &checkpoint.Checkpoint{}
	b, err := os.ReadFile(filepath.Join(r.dir, "pods", uid, "pod.json"))
	if err == nil {
		err = json.Unmarshal(b, c)
	}
	if err != nil || c.IsRemoving() || c.Key().String() != key {
		r.Errorf("checkpoint %s: %v", b, err)
	}
	if _, err := os.Stat(filepath.Dir(mark)); err != nil {
		r.Errorf("its volume: %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "pods", uid, "etc-hosts")); err != nil {
		r.Error(err)
	}
	if checkpoint.Exists(mark) {
		r.Error("it has the volume of the pod before")
	}
	if twice := r.DoubleRunning(); len(twice) > 0 {
		r.Errorf("ran twice at a time: %v", twice)
	}
}

// A pod that keeps its uid under another name starts when nothing of the former
// one is left, and what the former one leaves is not the new one's.
func TestAPodRenamedUnderItsUIDWaitsForTheOldOne(t *testing.T) {
	for name, newer := range map[string]string{"default/new-n": pinned("new"), "there/old-n": strings.Replace(pinned("old"), "{name:", "{namespace: there, name:", 1)} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Program("c", critest.Runs().IgnoresTerm())
				r.want(pinned("old"))
				mark := r.scribble("u-1")
				r.want(newer)
				r.expect("default/old-n/c")
				r.wantUIDInUse(name, "default/old-n")
				r.events.List(name).Each(func(e *v1.Event) bool {
					if e.Reason != "UIDInUse" || !strings.Contains(e.Message, "pod default/old-n") {
						r.Errorf("event %s %s", e.Reason, e.Message)
					}
					return true
				})
				r.after(19 * time.Second)
				r.expect("default/old-n/c")
				r.after(2 * time.Second)
				r.owns(name, "u-1", mark)
				r.after(5 * time.Minute)
				r.owns(name, "u-1", mark)
				if _, known := r.store.Pod("default/old-n"); known {
					r.Error("the former pod is still reported")
				}
				r.want()
				r.after(time.Minute)
				r.leavesNothing()
			})
		})
	}
}

func TestASuffixTurnedOffWaitsForThePodThatHasIt(t *testing.T) {
	live(t, func(r *rig) {
		doc := strings.Replace(pinned("web"), ", uid: u-1", "", 1)
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(doc)
		uid := r.Sandboxes()[0].UID
		mark := r.scribble(uid)
		for _, off := range []bool{true, false} {
			r.stop()
			r.configure = func(c *config.Config) { c.PodNameSuffix = !off }
			r.start()
			r.want(doc)
			older, newer := "default/web-n", "default/web"
			if !off {
				older, newer = newer, older
			}
			r.after(time.Second)
			r.expect(older + "/c")
			r.wantUIDInUse(newer, older)
			r.after(time.Minute)
			r.owns(newer, uid, mark)
		}
	})
}

// Whenever the agent dies while a pod waits for its uid, the next one goes on.
func TestAWaitForAUIDOutlivesTheAgent(t *testing.T) {
	for _, at := range []time.Duration{0, time.Second, 19 * time.Second, 20*time.Second + time.Millisecond} {
		t.Run(at.String(), func(t *testing.T) {
			live(t, func(r *rig) {
				r.Program("c", critest.Runs().IgnoresTerm())
				r.want(pinned("old"))
				mark := r.scribble("u-1")
				r.want(pinned("new"))
				r.after(at)
				r.kill()
				r.after(time.Second)
				r.start()
				r.want(pinned("new"))
				r.after(time.Minute)
				r.owns("default/new-n", "u-1", mark)
			})
		})
	}
}

func TestARenameTakenBackKeepsToOnePodAtATime(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(pinned("old"))
		mark := r.scribble("u-1")
		r.want(pinned("new"))
		r.after(time.Second)
		r.want(pinned("old"))
		if _, known := r.store.Pod("default/new-n"); known {
			r.Error("the pod that waited is still reported")
		}
		r.after(time.Minute)
		r.owns("default/old-n", "u-1", mark)
		r.want(pinned("a"))
		r.want(pinned("b"))
		r.want(pinned("c"))
		r.wantUIDInUse("default/c-n", "default/old-n")
		r.after(time.Minute)
		r.owns("default/c-n", "u-1", mark)
	})
}

func TestOfTwoPodsWithOneUIDTheOneThatRunsStays(t *testing.T) {
	live(t, func(r *rig) {
		r.want(pinned("z"))
		mark := r.scribble("u-1")
		for range 2 {
			r.want(pinned("a"), pinned("z"))
			r.after(time.Minute)
			r.expect("default/z-n/c")
			r.wantUIDInUse("default/a-n", "default/z-n")
			for _, file := range []string{"/m/0.yaml", "/m/1.yaml"} {
				if st := r.status("default/a-n"); !strings.Contains(st.Message, file) {
					r.Errorf("message %q does not name %s", st.Message, file)
				}
			}
			r.stop()
			r.start()
		}
		r.want(pinned("a"))
		r.after(time.Minute)
		r.owns("default/a-n", "u-1", mark)
	})
}

// The former version of a pod runs on while the uid of the new one is not free.
func TestAPodThatTakesOverAUIDRunsUntilItIsFree(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("old-n/c", critest.Runs().IgnoresTerm())
		r.want(pinned("old"), manifest("web", "img:1"))
		mark := r.scribble("u-1")
		r.want(pinned("web"))
		r.after(19 * time.Second)
		r.expect("default/old-n/c", "default/web-n/c")
		r.after(time.Minute)
		r.owns("default/web-n", "u-1", mark)
	})
}

func TestAUIDIsFreeOnceItsPodHasAnother(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(pinned("a"))
		r.want(strings.Replace(pinned("a"), "u-1", "u-2", 1), pinned("b"))
		r.after(time.Second)
		r.expect("default/a-n/c")
		r.wantUIDInUse("default/b-n", "default/a-n")
		r.after(time.Minute)
		r.expect("default/a-n/c", "default/b-n/c")
	})
}

// Neither can have the other's uid before that one is gone, so both must go.
func TestTwoPodsMayExchangeTheirUIDs(t *testing.T) {
	for _, policy := range []string{"Always", "Never"} {
		t.Run(policy, func(t *testing.T) {
			live(t, func(r *rig) {
				is := func(name, uid string) string {
					return strings.Replace(pinned(name, "restartPolicy: "+policy), "u-1", uid, 1)
				}
				r.want(is("a", "u-1"), is("b", "u-2"))
				if policy == "Never" {
					r.Exit("a-n/c", 0)
					r.Exit("b-n/c", 0)
					r.after(time.Minute)
					r.expect()
				}
				r.want(is("a", "u-2"), is("b", "u-1"))
				r.after(time.Minute)
				r.expect("default/a-n/c", "default/b-n/c")
				for _, b := range r.Sandboxes() {
					if want := map[string]string{"a-n": "u-2", "b-n": "u-1"}[b.Name]; b.UID != want {
						r.Errorf("%s has the uid %s, want %s", b.Name, b.UID, want)
					}
				}
			})
		})
	}
}

// What has the uid in the runtime alone, as its checkpoint cannot be read, goes first.
func TestAPodWaitsForItsUIDInTheRuntime(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(pinned("old"))
		mark := r.scribble("u-1")
		r.stop()
		if err := os.WriteFile(filepath.Join(r.dir, "pods/u-1/pod.json"), []byte("{"), 0o600); err != nil {
			r.Fatal(err)
		}
		r.start()
		r.want(pinned("new"))
		r.after(time.Second)
		r.expect("default/old-n/c")
		if st := fmt.Sprintf("%+v", r.status("default/new-n")); !strings.Contains(st, "UIDInUse") || !strings.Contains(st, "pod default/old-n") {
			r.Errorf("status %s", st)
		}
		r.after(time.Minute)
		r.owns("default/new-n", "u-1", mark)
	})
}

// The end of a pod leaves alone what is another one's, even if both had one uid.
func TestTheEndOfAPodSparesWhoHasItsUID(t *testing.T) {
	live(t, func(r *rig) {
		path := filepath.Join(r.dir, "pods/u-1/pod.json")
		r.want(pinned("new"))
		b, err := os.ReadFile(path)
		if err != nil {
			r.Fatal(err)
		}
		r.want()
		r.want(pinned("old"))
		r.stop()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			r.Fatal(err)
		}
		r.start()
		r.want(pinned("new"))
		r.after(time.Minute)
		r.owns("default/new-n", "u-1", filepath.Join(r.dir, "pods/u-1/volumes/kubernetes.io~empty-dir/v/mark"))
	})
}

// Every uid that a manifest may have can be found again, and leaves nothing.
func TestPodsWithUnusualUIDsLeaveNothing(t *testing.T) {
	for _, uid := range []string{"-rf", "a-", "-", "A--B", "my-own-uid", "1b4e28ba-2fa1-11d2-883f-0016d3cca427", strings.Repeat("a", 63)} {
		t.Run(uid, func(t *testing.T) {
			live(t, func(r *rig) {
				doc := strings.Replace(pinned("web"), "uid: u-1", fmt.Sprintf("uid: %q", uid), 1)
				r.want(doc)
				r.after(5 * time.Minute)
				if n := r.Count("RunPodSandbox"); n != 1 {
					r.Errorf("%d sandboxes were made", n)
				}
				r.stop()
				r.start()
				r.want(doc)
				r.after(5 * time.Minute)
				r.expect("default/web-n/c")
				r.want()
				r.after(time.Minute)
				r.leavesNothing()
			})
		})
	}
}

// What the disk does not take makes an exchange wait, too: what runs goes on.
func TestPodsDoNotStopForEachOtherOnADiskThatTakesNothing(t *testing.T) {
	withPort := func(name, port, image string) string {
		return strings.Replace(manifest(name, image), "image:", "ports: [{containerPort: 80, hostPort: "+port+"}], image:", 1)
	}
	withUID := func(name, uid string) string {
		return strings.Replace(manifest(name, "img:1"), "{name: "+name, "{uid: "+uid+", name: "+name, 1)
	}
	for what, row := range map[string]struct{ first, then []string }{
		"ports": {[]string{withPort("a", "80", "img:1"), withPort("b", "81", "img:1")}, []string{withPort("a", "81", "img:2"), withPort("b", "80", "img:2")}},
		"uids":  {[]string{withUID("a", "u-1"), withUID("b", "u-2")}, []string{withUID("a", "u-2"), withUID("b", "u-1")}},
	} {
		t.Run(what, func(t *testing.T) {
			onSmallDisk(t, func(r *rig, disk string) {
				r.want(row.first...)
				r.after(time.Minute)
				made := r.made()
				junk := fill(r.T, disk)
				r.want(row.then...)
				r.after(5 * time.Minute)
				r.expect("default/a-n/c", "default/b-n/c")
				if r.made() != made {
					r.Error("something was made again")
				}
				r.says(1, "allocations run on, as the disk does not take")
				noErr(r.T, os.Remove(junk))
				r.after(time.Minute)
				r.expect("default/a-n/c", "default/b-n/c")
				if r.made() == made {
					r.Error("they did not change places")
				}
			})
		})
	}
}
