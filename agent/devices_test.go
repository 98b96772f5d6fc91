package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/config"
	"monopod/cri/critest"
)

// onDevices runs a test with an agent whose settings make example.com/serial of the devices at
// dev/tty* in its folder. In place of devices there are links to those that every machine has.
func onDevices(t *testing.T, test func(*rig)) {
	liveWith(t, func(r *rig) {
		noErr(t, os.MkdirAll(filepath.Join(r.dir, "dev"), 0o755))
		r.configure = func(c *config.Config) {
			c.Devices = map[string]config.Device{"example.com/serial": {Paths: []string{filepath.Join(r.dir, "dev/tty*")}}}
		}
	}, test)
}

// connects connects a device, which is seen at once.
func (r *rig) connects(name, to string) {
	r.Helper()
	noErr(r.T, os.Symlink(to, filepath.Join(r.dir, "dev", name)))
	r.devices.Look()
	r.settle()
}

func (r *rig) disconnects(name string) {
	r.Helper()
	noErr(r.T, os.Remove(filepath.Join(r.dir, "dev", name)))
	r.devices.Look()
	r.settle()
}

// usesDevice is a pod that requests a resource.
func usesDevice(name, image, resource string, extra ...string) string {
	return strings.Replace(manifest(name, image, extra...), "image:", "resources: {limits: {"+resource+": 1}}, image:", 1)
}

func usesSerial(name, image string, extra ...string) string {
	return usesDevice(name, image, "example.com/serial", extra...)
}

// made returns the devices with which the container of a pod was made.
func (r *rig) devicesOf(pod string) string {
	r.Helper()
	c, there := r.Container(pod + "-n/c")
	if !there {
		return ""
	}
	var all []string
	for _, d := range c.Config.Devices {
		all = append(all, fmt.Sprintf("%s as %s %s", d.HostPath, strings.TrimPrefix(d.ContainerPath, r.dir+"/"), d.Permissions))
	}
	for _, d := range c.Config.CDIDevices {
		all = append(all, d.Name)
	}
	return strings.Join(all, ", ")
}

func (r *rig) hasDevices(pod, want string) {
	r.Helper()
	if got := r.devicesOf(pod); got != want {
		r.Errorf("%s has %q, not %q", pod, got, want)
	}
}

// refusal returns why a pod is refused, without the folder.
func (r *rig) refusal(pod string) string {
	return strings.ReplaceAll(r.status("default/"+pod+"-n").Message, r.dir+"/", "")
}

func TestAPodWaitsForItsDevice(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.want(usesSerial("web", "img:1"))
		r.wantRefused("default/web-n", "OutOfexample.com/serial")
		const want = "Pod was rejected: Node didn't have enough resource: example.com/serial, requested: 1, used: 0, capacity: 0: nothing is at dev/tty*: connect the device, or correct devices in the settings"
		if got := r.refusal("web"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		r.connects("tty0", "/dev/null")
		r.hasDevices("web", "/dev/null as dev/tty0 rw")
		r.disconnects("tty0")
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if n := r.Count("StopContainer"); n > 0 {
			t.Errorf("%d containers were stopped", n)
		}
	})
}

func TestOnePodAtATimeHasADevice(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		r.want(usesSerial("a", "img:1"), usesSerial("b", "img:1"))
		r.hasDevices("a", "/dev/null as dev/tty0 rw")
		r.wantRefused("default/b-n", "OutOfexample.com/serial")
		if got := r.refusal("b"); !strings.HasSuffix(got, "used: 1, capacity: 1: default/a-n has dev/tty0") {
			t.Errorf("it waits as %s", got)
		}
		r.stop()
		r.start()
		r.want(usesSerial("b", "img:1"), usesSerial("a", "img:1"))
		r.after(time.Minute)
		r.expect("default/a-n/c")
		r.wantRefused("default/b-n", "OutOfexample.com/serial")
		r.want(usesSerial("b", "img:1"))
		r.after(31 * time.Second)
		r.expect("default/b-n/c")
		r.hasDevices("b", "/dev/null as dev/tty0 rw")
	})
}

// The record of the assignments alone says who has which of two devices.
func TestAnotherAgentKnowsWhoHasWhichDevice(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		r.connects("tty1", "/dev/zero")
		a, b := usesSerial("a", "img:1"), usesSerial("b", "img:1")
		r.want(a, b)
		r.want(b)
		r.after(31 * time.Second)
		r.hasDevices("b", "/dev/zero as dev/tty1 rw")
		r.kill()
		r.start()
		r.want(b, usesSerial("d", "img:1"))
		r.hasDevices("d", "/dev/null as dev/tty0 rw")
		r.want(b, usesSerial("d", "img:1"), usesSerial("e", "img:1"))
		r.wantRefused("default/e-n", "OutOfexample.com/serial")
	})
}

// The next version of a pod has the device of the former one, for which another pod waits.
func TestANewVersionOfAPodInheritsItsDevice(t *testing.T) {
	for name, next := range map[string]string{
		"in place":        usesSerial("a", "img:2"),
		"in its place":    usesSerial("a", "img:1", "hostname: other"),
		"stopped first":   strings.Replace(usesSerial("a", "img:1", "hostname: other"), "name: a}", "name: a, annotations: {monopod.update: stop-first}}", 1),
		"a trial that is": strings.Replace(usesSerial("a", "img:1", "hostname: other"), "name: a}", "name: a, annotations: {monopod.update-health: 30s}}", 1),
	} {
		t.Run(name, func(t *testing.T) {
			onDevices(t, func(r *rig) {
				r.connects("tty0", "/dev/null")
				waits := usesSerial("b", "img:1")
				r.want(usesSerial("a", "img:1"), waits)
				before := r.made()
				r.want(next, waits)
				r.after(2 * time.Minute)
				if r.made() == before {
					t.Error("nothing is made")
				}
				r.expect("default/a-n/c")
				r.hasDevices("a", "/dev/null as dev/tty0 rw")
				r.wantRefused("default/b-n", "OutOfexample.com/serial")
				r.want(waits)
				r.after(31 * time.Second)
				r.hasDevices("b", "/dev/null as dev/tty0 rw")
			})
		})
	}
}

// A version that fails gives way to the former one, for which its device is kept.
func TestADeviceIsKeptForAVersionThatMayBeRestored(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		trial := func(image string) string {
			return strings.Replace(usesSerial("a", image), "name: a}", "name: a, annotations: {monopod.update-health: 30s, monopod.update: replace}}", 1)
		}
		r.want(trial("img:1"), usesSerial("b", "img:1"))
		r.after(time.Minute)
		bad := strings.Replace(strings.Replace(trial("img:2"), "resources: {limits: {example.com/serial: 1}}, ", "", 1), "image: ", "readinessProbe: {exec: {command: [never]}}, image: ", 1)
		r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) { return "", 1, nil })
		r.want(bad, usesSerial("b", "img:1"))
		r.after(20 * time.Second)
		r.hasDevices("a", "")
		r.wantRefused("default/b-n", "OutOfexample.com/serial")
		r.after(2 * time.Minute)
		r.hasDevices("a", "/dev/null as dev/tty0 rw")
		r.wantRefused("default/b-n", "OutOfexample.com/serial")
	})
}

// A stopped pod has no device.
// Other settings have moved the device of a container to another resource: a pod that waits for it
// starts at once when the container is made again with a device of its own resource.
func TestAPodWaitsForADeviceThatMovesToItsResource(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		r.want(usesSerial("a", "img:1"))
		r.hasDevices("a", "/dev/null as dev/tty0 rw")
		r.kill()
		former := r.configure
		r.configure = func(c *config.Config) {
			former(c)
			c.Devices["example.com/modem"] = c.Devices["example.com/serial"]
			c.Devices["example.com/serial"] = config.Device{Paths: []string{filepath.Join(r.dir, "dev/usb*")}}
		}
		r.start()
		r.connects("usb0", "/dev/zero")
		r.want(usesSerial("a", "img:1"), usesDevice("b", "img:1", "example.com/modem"))
		r.hasDevices("b", "")
		r.Exit("default/a-n/c", 1)
		r.settle()
		r.hasDevices("a", "/dev/zero as dev/usb0 rw")
		r.hasDevices("b", "/dev/null as dev/tty0 rw")
	})
}

// Other settings have another name for a resource: what runs has its device for itself until it is
// made again.
func TestWhatRunsHasTheDeviceOfAResourceThatIsGone(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		r.want(usesSerial("a", "img:1"))
		r.kill()
		former := r.configure
		r.configure = func(c *config.Config) {
			former(c)
			c.Devices = map[string]config.Device{"example.com/modem": c.Devices["example.com/serial"]}
		}
		r.start()
		r.want(usesSerial("a", "img:1"), usesDevice("b", "img:1", "example.com/modem"))
		r.wantRefused("default/b-n", "OutOfexample.com/modem")
		r.hasDevices("a", "/dev/null as dev/tty0 rw")
		r.want(usesDevice("b", "img:1", "example.com/modem"))
		r.after(31 * time.Second)
		r.hasDevices("b", "/dev/null as dev/tty0 rw")
	})
}

func TestAStoppedPodGivesItsDeviceAway(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		r.want(usesSerial("a", "img:1"), usesSerial("b", "img:1"))
		r.stops("a")
		r.after(31 * time.Second)
		r.hasDevices("b", "/dev/null as dev/tty0 rw")
	})
}

// podman kube play has a name for a device that no setting has.
func TestADeviceThatIsRequestedByItsPath(t *testing.T) {
	live(t, func(r *rig) {
		noErr(t, os.MkdirAll(filepath.Join(r.dir, "dev"), 0o755))
		r.want(usesDevice("web", "img:1", "podman.io/device="+r.dir+"/dev/fuse:/dev/fuse:rw"))
		r.waits("default/web-n", "c", "CreateContainerConfigError")
		if got, want := r.containerStatus("default/web-n", "c").State.Waiting.Message, "the device "+r.dir+"/dev/fuse is not there: connect it, or correct its path"; got != want {
			t.Errorf("it waits as %s", got)
		}
		r.after(15*time.Minute + time.Second)
		r.connects("fuse", "/dev/null")
		r.hasDevices("web", "/dev/null as /dev/fuse rw")
	})
}

// A version whose device is not there is not ready to replace the former one.
func TestAnUpdateWaitsForADeviceThatIsNamed(t *testing.T) {
	live(t, func(r *rig) {
		noErr(t, os.MkdirAll(filepath.Join(r.dir, "dev"), 0o755))
		r.want(manifest("web", "img:1"))
		r.want(usesDevice("web", "img:2", "podman.io/device="+r.dir+"/dev/fuse"))
		r.after(time.Minute)
		r.updateWaits("dev/fuse is not there: connect it, or correct its path")
		r.connects("fuse", "/dev/null")
		if got := r.Count("StopContainer"); got != 1 {
			t.Errorf("%d containers are stopped", got)
		}
		r.after(31 * time.Second)
		r.replaced("img:2")
	})
}

func TestCDIDevices(t *testing.T) {
	live(t, func(r *rig) {
		annotated := strings.Replace(manifest("cam", "img:1"), "name: cam}", "name: cam, annotations: {cdi.k8s.io/cams: example.com/cam=x}}", 1)
		r.want(usesDevice("gpu", "img:1", "example.com/gpu=0"), annotated)
		r.waits("default/gpu-n", "c", "CreateContainerConfigError")
		if got := r.containerStatus("default/cam-n", "c").State.Waiting.Message; !strings.HasSuffix(got, "has example.com/cam=x: add it with the tool of the device's maker, or correct the name") {
			t.Errorf("it waits as %s", got)
		}
		noErr(t, os.MkdirAll(filepath.Join(r.dir, "cdi"), 0o755))
		for name, device := range map[string]string{"gpu": "0", "cam": "x"} {
			noErr(t, os.WriteFile(filepath.Join(r.dir, "cdi", name+".json"), fmt.Appendf(nil, `{"kind": "example.com/%s", "devices": [{"name": %q}]}`, name, device), 0o644))
		}
		r.after(11 * time.Second)
		r.hasDevices("gpu", "example.com/gpu=0")
		r.hasDevices("cam", "example.com/cam=x")
	})
}

// It would make the container without its device, and say nothing.
func TestARuntimeWithoutCDI(t *testing.T) {
	liveWith(t, func(r *rig) { r.LikeContainerd16() }, func(r *rig) {
		noErr(t, os.MkdirAll(filepath.Join(r.dir, "cdi"), 0o755))
		noErr(t, os.WriteFile(filepath.Join(r.dir, "cdi", "gpu.json"), []byte(`{"kind": "example.com/gpu", "devices": [{"name": "0"}]}`), 0o644))
		r.want(usesDevice("gpu", "img:1", "example.com/gpu=0"))
		r.waits("default/gpu-n", "c", "CreateContainerConfigError")
		const want = "the runtime gives containers no CDI devices, such as example.com/gpu=0: use containerd 2, or 1.7 with enable_cdi = true in its configuration"
		if got := r.containerStatus("default/gpu-n", "c").State.Waiting.Message; got != want {
			t.Errorf("it waits as %s", got)
		}
	})
}

func TestAResourceThatNoSettingHas(t *testing.T) {
	live(t, func(r *rig) {
		r.want(usesSerial("web", "img:1"))
		r.wantRefused("default/web-n", "OutOfexample.com/serial")
		if got := r.refusal("web"); !strings.HasSuffix(got, "capacity: 0: devices in the settings does not have it: add it there, or remove it from the manifest") {
			t.Errorf("it waits as %s", got)
		}
	})
}

// A container that starts again gets another device if its own is gone.
func TestACrashedContainerGetsADeviceThatIsThere(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		r.want(usesSerial("web", "img:1"))
		r.disconnects("tty0")
		r.Exit("default/web-n/c", 1)
		r.after(time.Minute)
		r.waits("default/web-n", "c", "CreateContainerConfigError")
		r.connects("tty1", "/dev/zero")
		r.hasDevices("web", "/dev/zero as dev/tty1 rw")
		if st := r.status("default/web-n"); st.Phase != v1.PodRunning {
			t.Errorf("it is %s", st.Phase)
		}
	})
}

// After a reboot the pod that had the device has it again, and waits for it if it is not there yet.
func TestWhoHasADeviceStaysOverAReboot(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		a, b := usesSerial("a", "img:1"), usesSerial("b", "img:1")
		r.want(b)
		r.want(a, b)
		r.wantRefused("default/a-n", "OutOfexample.com/serial")
		r.disconnects("tty0")
		r.stop()
		r.reboot()
		r.start()
		r.want(a, b)
		r.after(time.Minute)
		r.waits("default/b-n", "c", "CreateContainerConfigError")
		if got := r.containerStatus("default/b-n", "c").State.Waiting.Message; !strings.Contains(got, "nothing is at ") {
			t.Errorf("it waits as %s", got)
		}
		r.wantRefused("default/a-n", "OutOfexample.com/serial")
		r.connects("tty0", "/dev/null")
		r.hasDevices("b", "/dev/null as dev/tty0 rw")
		r.wantRefused("default/a-n", "OutOfexample.com/serial")
	})
}

// A container that runs without its device, which was unplugged, is not stopped for a version that
// could not start.
func TestAnUpdateInPlaceWaitsForADeviceThatIsGone(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		r.want(usesSerial("web", "img:1"))
		r.disconnects("tty0")
		r.want(usesSerial("web", "img:2"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if got := r.Count("StopContainer"); got != 0 {
			t.Errorf("%d containers are stopped", got)
		}
		r.updateWaits("nothing is at " + r.dir + "/dev/tty*: connect the device, or correct devices in the settings")
		r.connects("tty0", "/dev/null")
		r.after(31 * time.Second)
		r.hasDevices("web", "/dev/null as dev/tty0 rw")
		if got := r.Count("StopContainer"); got != 1 {
			t.Errorf("%d containers are stopped", got)
		}
	})
}

// A container that keeps running needs no device for the restart of another one.
func TestAnUpdateInPlaceNeedsTheDevicesOfWhatStartsAlone(t *testing.T) {
	onDevices(t, func(r *rig) {
		two := func(image string) string {
			return strings.Replace(usesSerial("web", "img:1"), "containers: [", "containers: [{name: other, image: \""+image+"\"}, ", 1)
		}
		r.connects("tty0", "/dev/null")
		r.want(two("img:1"))
		r.disconnects("tty0")
		before := r.made()
		r.want(two("img:2"))
		r.after(time.Minute)
		if r.made() == before {
			t.Error("nothing is made")
		}
		r.expect("default/web-n/other", "default/web-n/c")
	})
}

// What a version has is free once its containers are gone, and no sooner, although the next one has its
// uid: they may take their grace period, also over a restart of the agent.
func TestAVersionOfTheSameUIDFreesNoDeviceThatIsInUse(t *testing.T) {
	for name, next := range map[string]string{"in place": manifest("a", "stubborn:1"), "replaced": manifest("a", "stubborn:1", "hostNetwork: true")} {
		t.Run(name, func(t *testing.T) {
			onDevices(t, func(r *rig) {
				r.Program("stubborn:1", critest.Runs().IgnoresTerm())
				r.connects("tty0", "/dev/null")
				pinned := func(text string) string { return strings.Replace(text, "name: a}", "name: a, uid: one}", 1) }
				b := usesSerial("b", "img:1")
				r.want(pinned(usesSerial("a", "stubborn:1")))
				r.want(pinned(next))
				r.want(pinned(next), b)
				r.wantRefused("default/b-n", "OutOfexample.com/serial")
				r.hasDevices("a", "/dev/null as dev/tty0 rw")
				r.kill()
				r.start()
				r.want(pinned(next), b)
				r.wantRefused("default/b-n", "OutOfexample.com/serial")
				r.after(31 * time.Second)
				r.hasDevices("a", "")
				r.hasDevices("b", "/dev/null as dev/tty0 rw")
			})
		})
	}
}

// A container whose own device is gone starts as soon as another one of its resource is free.
func TestAContainerWithoutItsDeviceStartsWhenOneIsFreed(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		r.connects("tty1", "/dev/zero")
		a, b := usesSerial("a", "img:1"), usesSerial("b", "img:1")
		r.want(a)
		r.want(a, b)
		r.disconnects("tty0")
		r.Exit("default/a-n/c", 1)
		r.after(20 * time.Minute)
		r.waits("default/a-n", "c", "CreateContainerConfigError")
		r.want(a)
		r.after(2 * time.Second)
		r.hasDevices("a", "/dev/zero as dev/tty1 rw")
	})
}
