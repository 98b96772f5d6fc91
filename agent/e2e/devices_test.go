//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Numbers of devices that runtimes give no container: /dev/fuse, which stands for a serial device,
// and /dev/loop-control.
var (
	serialDevice = unix.Mkdev(10, 229)
	otherDevice  = unix.Mkdev(10, 237)
)

// givesOnePodADevice has pods request a serial device that is not there yet. Once it is, the first
// pod can open it, and no other device; the second one waits until the first is gone, whatever
// happens to the agent.
func givesOnePodADevice(w *world) {
	dir := filepath.Join(w.agent.Dir, "dev")
	check(w.T, os.Mkdir(dir, 0o755))
	w.agent.Settings += fmt.Sprintf("podResources: true\ndevices: {example.com/serial: {paths: ['%s/tty*']}}\n", dir)
	w.start()
	w.write("first", withSerial)
	w.refusedFor("first", "nothing is at "+dir+"/tty*: connect the device, or correct devices in the settings")
	tty := filepath.Join(dir, "tty0")
	w.connect(tty, serialDevice)
	before := w.running("first")
	w.opens("first", tty)
	w.opensNoOther("first")
	w.write("second", withSerial)
	w.refusedFor("second", w.ns+"/"+name("first")+" has "+tty)
	w.kill()
	w.start()
	w.barrier("after")
	w.same(before)
	w.refusedFor("second", w.ns+"/"+name("first")+" has "+tty)
	w.toldDevices("first", tty)
	out, err := w.agent.CLI(w.Context(), "describe", "node")
	check(w.T, err)
	if holder := w.ns + "/" + name("first") + "/main"; !strings.Contains(out, holder) {
		w.Errorf("describe node does not tell of %s: %s", holder, out)
	}
	check(w.T, os.Remove(tty))
	w.barrier("unplugged")
	w.same(before)
	w.remove("first")
	w.refusedFor("second", "nothing is at "+dir+"/tty*")
	w.connect(tty, serialDevice)
	w.running("second")
	w.opens("second", tty)
}

// withSerial is a pod that requests a serial device.
const withSerial = `
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sleep, "3600"]
    resources: {limits: {example.com/serial: 1}}
`

// connect makes a device of a number.
func (w *world) connect(path string, number uint64) {
	w.Helper()
	check(w.T, unix.Mknod(path, unix.S_IFCHR|0o666, int(number)))
}

// refusedFor waits until a pod waits, for a reason that ends so.
func (w *world) refusedFor(pod, reason string) {
	w.Helper()
	w.status(pod, "waits: "+reason, func(s v1.PodStatus) bool {
		return s.Reason == "OutOfexample.com/serial" && strings.Contains(s.Message, reason)
	})
}

// opens checks that a pod's container can open a device.
func (w *world) opens(pod, path string) {
	w.Helper()
	out, err := w.agent.CLI(w.Context(), "exec", w.ns+"/"+pod, "--", "sh", "-c", "exec 3<>"+path+" && echo opened")
	if err != nil || !strings.Contains(out, "opened") {
		w.Errorf("%s does not open %s: %s %v", pod, path, out, err)
	}
}

// opensNoOther checks that a pod's container cannot open a device that it was not given, even if it
// makes a node of it.
func (w *world) opensNoOther(pod string) {
	w.Helper()
	script := fmt.Sprintf("{ mknod /other c %d %d && (exec 3<>/other && echo opened); } 2>&1; rm -f /other", unix.Major(otherDevice), unix.Minor(otherDevice))
	out, err := w.agent.CLI(w.Context(), "exec", w.ns+"/"+pod, "--", "sh", "-c", script)
	if err != nil || !strings.Contains(out, "Operation not permitted") {
		w.Errorf("%s opens another device: %s %v", pod, out, err)
	}
}

// toldDevices checks which devices a client of a kubelet is told that a pod has.
func (w *world) toldDevices(pod, want string) {
	w.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(w.agent.Root, "pod-resources/kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(w.T, err)
	defer conn.Close()
	got, err := api.NewPodResourcesListerClient(conn).Get(w.Context(), &api.GetPodResourcesRequest{PodName: name(pod), PodNamespace: w.ns})
	check(w.T, err)
	all := got.PodResources.Containers[0].Devices
	if len(all) != 1 || all[0].ResourceName != "example.com/serial" || strings.Join(all[0].DeviceIds, " ") != want {
		w.Errorf("a client is told %v", all)
	}
}

// givesDevicesByName has pods request a device by its path, as in podman kube play, and one by its
// CDI name, in a limit and in an annotation.
func givesDevicesByName(w *world) {
	dir := filepath.Join(w.agent.Dir, "dev")
	check(w.T, os.Mkdir(dir, 0o755))
	w.start()
	serial := filepath.Join(dir, "serial")
	w.write("podman", strings.Replace(withSerial, "example.com/serial", "podman.io/device="+serial+":/dev/modem:rw", 1))
	w.waitsFor("podman", "the device "+serial+" is not there: connect it, or correct its path")
	w.connect(serial, serialDevice)
	w.running("podman")
	w.opens("podman", "/dev/modem")

	vendor := "monopod-" + w.ns + ".example"
	w.write("cdi", strings.Replace(withSerial, "example.com/serial", vendor+"/modem=0", 1))
	w.writeFile("annotated.yaml", strings.Replace(strings.Replace(w.manifest("annotated", withSerial), "    resources: {limits: {example.com/serial: 1}}\n", "", 1),
		"metadata:\n", "metadata:\n  annotations: {cdi.k8s.io/modem: "+vendor+"/modem=0}\n", 1))
	w.waitsFor("cdi", "no CDI specification in /etc/cdi or /var/run/cdi has "+vendor+"/modem=0")
	w.specify(vendor, serial)
	if !w.rig.Runtime.HasCDI() {
		w.waitsFor("cdi", "the runtime gives containers no CDI devices")
		w.waitsFor("annotated", "the runtime gives containers no CDI devices")
		return
	}
	w.running("cdi", "annotated")
	w.opens("cdi", "/dev/modem0")
	w.opens("annotated", "/dev/modem0")
	w.opensNoOther("cdi")
}

// waitsFor waits until a pod's container waits, for a reason that starts so.
func (w *world) waitsFor(pod, reason string) {
	w.Helper()
	w.status(pod, "waits: "+reason, func(s v1.PodStatus) bool {
		return len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Waiting != nil && strings.HasPrefix(s.ContainerStatuses[0].State.Waiting.Message, reason)
	})
}

// specify writes a CDI specification of a vendor, with a device at a path, until the story ends.
func (w *world) specify(vendor, path string) {
	w.Helper()
	const dir = "/var/run/cdi"
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		check(w.T, os.Mkdir(dir, 0o755))
		w.Cleanup(func() { _ = os.Remove(dir) })
	}
	file := filepath.Join(dir, vendor+".json")
	w.Cleanup(func() { check(w.T, os.Remove(file)) })
	text := fmt.Sprintf(`{"cdiVersion": "0.6.0", "kind": "%s/modem", "devices": [{"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/modem0", "hostPath": %q}]}}]}`, vendor, path)
	check(w.T, os.WriteFile(file, []byte(text), 0o644))
}
