package devices

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/podspec"
)

// machine is a folder with devices: links to devices that every machine has.
type machine struct {
	*testing.T
	dir  string
	says []string // events
}

func newMachine(t *testing.T, devices ...string) *machine {
	m := &machine{T: t, dir: t.TempDir()}
	m.connect(devices...)
	return m
}

// connect connects devices: "tty0=null" is at tty0.
func (m *machine) connect(devices ...string) {
	m.Helper()
	for _, d := range devices {
		name, at, _ := strings.Cut(d, "=")
		if err := os.Symlink("/dev/"+at, filepath.Join(m.dir, name)); err != nil {
			m.Fatal(err)
		}
	}
}

func (m *machine) disconnect(name string) {
	m.Helper()
	if err := os.Remove(filepath.Join(m.dir, name)); err != nil {
		m.Fatal(err)
	}
}

const serial = "example.com/serial"

// settings has one resource, of the ttys of the machine.
func (m *machine) settings(change ...func(*Resource)) Settings {
	r := Resource{Paths: []string{filepath.Join(m.dir, "tty*")}, Permissions: "rw", Count: 1}
	for _, f := range change {
		f(&r)
	}
	return Settings{Resources: map[string]Resource{serial: r}, SpecDirs: []string{filepath.Join(m.dir, "cdi")}, Path: filepath.Join(m.dir, "devices.json"), Unwatched: true}
}

func (m *machine) keeper(s Settings) *Keeper {
	return New(s, slog.New(slog.DiscardHandler), func(reason, message string) { m.says = append(m.says, reason) })
}

// pod is a version of a pod: "web/1 c=1" is the version 1 of web, whose container c requests one of
// the resource, "i:c=1" an init container, "s:c=1" a sidecar. In place of a number, a name of a
// device.
func pod(text string) *v1.Pod {
	parts := strings.Fields(text)
	name, version, _ := strings.Cut(parts[0], "/")
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + version)}}
	for _, part := range parts[1:] {
		kind, rest := "", part
		if part[1] == ':' {
			kind, rest = part[:1], part[2:]
		}
		container, amount, _ := strings.Cut(rest, "=")
		c := v1.Container{Name: container, Resources: v1.ResourceRequirements{Limits: v1.ResourceList{}}}
		if n, err := resource.ParseQuantity(amount); err == nil {
			c.Resources.Limits[serial] = n
		} else {
			c.Resources.Limits[v1.ResourceName(amount)] = resource.MustParse("1")
		}
		if kind == "s" {
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}
		if kind != "" {
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		} else {
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return p
}

func take(k *Keeper, p *v1.Pod) *Refusal { return k.Take(p, string(p.UID)) }

// has returns the names of the devices that a version has: "c tty0".
func (m *machine) has(k *Keeper, p *v1.Pod) string {
	var all []string
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, id := range k.Own(keyOf(p), string(p.UID), c.Name)[serial] {
			all = append(all, c.Name+" "+strings.TrimPrefix(id, m.dir+"/"))
		}
	}
	return strings.Join(all, ", ")
}

func (m *machine) expect(k *Keeper, p *v1.Pod, want string) {
	m.Helper()
	if got := m.has(k, p); got != want {
		m.Errorf("%s has %q, not %q", p.UID, got, want)
	}
}

func (m *machine) given(k *Keeper, p *v1.Pod, container int) string {
	m.Helper()
	g, err := k.Give(p, &p.Spec.Containers[container])
	if err != nil {
		return strings.ReplaceAll(err.Error(), m.dir+"/", "")
	}
	var all []string
	for _, d := range g.Devices {
		all = append(all, fmt.Sprintf("%s as %s %s", d.HostPath, strings.TrimPrefix(d.ContainerPath, m.dir+"/"), d.Permissions))
	}
	return strings.Join(append(all, g.CDI...), ", ")
}

// refused returns why the version is refused, without the folder; "": it is not.
func (m *machine) refused(r *Refusal) string {
	if r == nil {
		return ""
	}
	return r.Reason + ": " + strings.ReplaceAll(r.Message.String(), m.dir+"/", "")
}

// One container at a time has a device, unless the settings say otherwise.
func TestWhoGetsADevice(t *testing.T) {
	one, shared, two := func(r *Resource) {}, func(r *Resource) { r.Count = 0 }, func(r *Resource) { r.Count = 2 }
	const full = "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 1, used: 1, capacity: 1: default/a has tty0"
	for _, row := range []struct {
		name     string
		devices  string
		settings func(*Resource)
		pods     []string
		want     string // what the last one has, or why it is refused
	}{
		{"the first", "tty0=null", one, []string{"a c=1"}, "c tty0"},
		{"a second pod waits", "tty0=null", one, []string{"a c=1", "b c=1"}, full},
		{"a second pod gets another device", "tty0=null tty1=zero", one, []string{"a c=1", "b c=1"}, "c tty1"},
		{"a second container of a pod, too", "tty0=null tty1=zero", one, []string{"a c=1 d=1"}, "c tty0, d tty1"},
		{"two of them", "tty0=null tty1=zero tty2=full", one, []string{"a c=1", "b c=2"}, "c tty1, c tty2"},
		{"more than there are", "tty0=null", one, []string{"a c=2"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 2, used: 0, capacity: 1: of tty0 there is no more: connect more, or request fewer"},
		{"none of it", "tty0=null", one, []string{"a c=1", "b c=0"}, ""},
		{"one that is shared", "tty0=null", shared, []string{"a c=1", "b c=1"}, "c tty0"},
		{"more of a shared one than there are", "tty0=null", shared, []string{"a c=2"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 2, used: 0, capacity: 1: of tty0 there is no more: connect more, or request fewer"},
		{"two at a time", "tty0=null", two, []string{"a c=1", "b c=1"}, "c tty0"},
		{"a third one of two", "tty0=null", two, []string{"a c=1", "b c=1", "d c=1"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 1, used: 2, capacity: 2: default/a has tty0, default/b has tty0"},
		{"an init container and those after it", "tty0=null", one, []string{"a i:i=1 i:j=1 c=1"}, "i tty0, j tty0, c tty0"},
		{"a sidecar after an init container", "tty0=null", one, []string{"a i:i=1 s:s=1"}, "i tty0, s tty0"},
		{"a sidecar runs beside the others", "tty0=null", one, []string{"a s:s=1 c=1"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 1, used: 0, capacity: 1: of tty0 there is no more: connect more, or request fewer"},
		{"an init container and the one after it are one user", "tty0=null", two, []string{"a i:i=1 i:j=1 c=1", "b c=1"}, "c tty0"},
		{"they are one user, and no more", "tty0=null", two, []string{"a i:i=1 c=1", "b c=1", "d c=1"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 1, used: 2, capacity: 2: default/a has tty0, default/b has tty0"},
		{"an init container runs beside the sidecar before it", "tty0=null", two, []string{"a s:s=1 i:i=1", "b c=1"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 1, used: 2, capacity: 2: default/a has tty0"},
		{"a device at two paths is one", "tty0=null ttyS=null", one, []string{"a c=1", "b c=1"}, full},
		{"nothing is there", "", one, []string{"a c=1"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 1, used: 0, capacity: 0: nothing is at tty*: connect the device, or correct devices in the settings"},
		{"what is there is no device", "tty0=../etc", one, []string{"a c=1"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 1, used: 0, capacity: 0: tty0 is no device: it is a folder: name the devices in it"},
		{"what is there is a file", "tty0=../etc/passwd", one, []string{"a c=1"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 1, used: 0, capacity: 0: tty0 is no device: correct its path, or mount it as a hostPath volume"},
		{"a CDI device without specification", "", func(r *Resource) { r.CDI, r.Paths = []string{"example.com/gpu=0"}, nil }, []string{"a c=1"}, "OutOfexample.com/serial: Node didn't have enough resource: example.com/serial, requested: 1, used: 0, capacity: 0: no CDI specification in cdi has example.com/gpu=0: add it with the tool of the device's maker, or correct devices in the settings"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newMachine(t, strings.Fields(row.devices)...)
			k := m.keeper(m.settings(row.settings))
			got := ""
			for _, text := range row.pods {
				p := pod(text)
				room, refusal := k.Room(p), take(k, p)
				got = m.refused(refusal)
				if m.refused(room) != got {
					t.Errorf("asked, it was %q", m.refused(room))
				}
				if refusal == nil {
					got = m.has(k, p)
				}
			}
			if got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// A new version of a pod replaces the former one, whose device it inherits.
func TestANewVersionInheritsTheDevice(t *testing.T) {
	m := newMachine(t, "tty0=null", "tty1=zero", "tty2=full")
	k := m.keeper(m.settings())
	first, other := pod("a/1 c=1 d=1"), pod("b c=1")
	take(k, other)
	take(k, first)
	m.expect(k, first, "c tty1, d tty2")
	next := pod("a/2 d=1 c=1")
	if r := take(k, next); r != nil {
		t.Fatal(r)
	}
	m.expect(k, next, "d tty2, c tty1")
	m.expect(k, first, "c tty1, d tty2")
	if r := take(k, pod("e c=1")); r == nil {
		t.Error("a device is given twice")
	}
	if !k.Keep("default/a", []string{"a2"}) || k.Keep("default/a", []string{"a2"}) {
		t.Error("it is not known what is freed")
	}
	m.expect(k, first, "")
	if r := take(k, pod("e c=1")); r == nil {
		t.Error("a device is given twice once the former version is gone")
	}
	k.Keep("default/a", nil)
	if r := take(k, pod("e c=2")); r != nil {
		t.Error(r)
	}
}

// Another container of the next version gets what the former version had, too, before what is free.
func TestANewContainerInheritsTheDevice(t *testing.T) {
	m := newMachine(t, "tty0=null", "tty1=zero")
	k := m.keeper(m.settings())
	take(k, pod("b c=1"))
	take(k, pod("a/1 c=1"))
	k.Keep("default/b", nil)
	next := pod("a/2 d=1")
	take(k, next)
	m.expect(k, next, "d tty1")
}

// Two versions of a pod are one user of a device that two may have.
func TestTwoVersionsOfAPodCountOnce(t *testing.T) {
	m := newMachine(t, "tty0=null")
	k := m.keeper(m.settings(func(r *Resource) { r.Count = 2 }))
	take(k, pod("a/1 c=1"))
	take(k, pod("a/2 c=1"))
	if r := take(k, pod("b c=1")); r != nil {
		t.Error(r)
	}
	if r := take(k, pod("d c=1")); r == nil {
		t.Error("three have it")
	}
}

// A device that two resources have, by different paths, is still one.
func TestOneDeviceOfTwoResources(t *testing.T) {
	m := newMachine(t, "tty0=null", "modem=null")
	s := m.settings()
	s.Resources["example.com/modem"] = Resource{Paths: []string{filepath.Join(m.dir, "modem")}}
	k := m.keeper(s)
	modem := pod("a c=0")
	modem.Spec.Containers[0].Resources.Limits["example.com/modem"] = resource.MustParse("1")
	take(k, modem)
	if r := k.Room(pod("b c=1")); r == nil {
		t.Error("another pod gets it as the other resource")
	}
	if got := k.Capacity(5); got.Name("example.com/modem", "").Value() != 1 {
		t.Errorf("capacity is %v", got)
	}
}

// The next agent has other settings, by which the same device has another path.
func TestADeviceOfAFormerPathIsStillHeld(t *testing.T) {
	m := newMachine(t, "tty0=null")
	k := m.keeper(m.settings())
	a := pod("a c=1")
	take(k, a)
	m.given(k, a, 0)
	m.connect("modem=null")
	next := m.keeper(m.settings(func(r *Resource) { r.Paths = append([]string{filepath.Join(m.dir, "modem")}, r.Paths...) }))
	if r := next.Room(pod("b c=1")); r == nil {
		t.Error("another pod gets it")
	}
	if got := m.given(next, a, 0); got != "/dev/null as tty0 rw" {
		t.Errorf("given %s", got)
	}
	for _, d := range next.List() {
		if d.Missing || !slices.Equal(d.Holders, []string{"default/a/c"}) {
			t.Errorf("reported as %+v", d)
		}
	}
}

// A link comes after the device, as udev makes it, and stands before the device in the settings.
func TestADeviceWithALinkThatCameLaterIsReportedOnce(t *testing.T) {
	m := newMachine(t, "tty0=null")
	link := filepath.Join(m.dir, "modem")
	k := m.keeper(m.settings(func(r *Resource) { r.Paths = append([]string{link}, r.Paths...) }))
	a := pod("a c=1")
	take(k, a)
	m.connect("modem=null")
	k.Look()
	if got, want := fmt.Sprint(k.List()), fmt.Sprintf("[{%s %s false [default/a/c]}]", serial, link); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := k.Allocatable()[serial]; !slices.Equal(got, []string{link}) {
		t.Errorf("allocatable are %s", got)
	}
	m.expect(k, a, "c modem")
	if got := m.given(k, a, 0); got != "/dev/null as tty0 rw" {
		t.Errorf("given %s", got)
	}
}

// The next agent has other settings, by which the device is of another resource. What runs keeps it; a
// container that is made again gets a device of its own resource.
func TestADeviceThatIsOfAnotherResourceNow(t *testing.T) {
	m := newMachine(t, "tty0=null", "tty1=zero")
	k := m.keeper(m.settings())
	a := pod("a c=1")
	take(k, a)
	m.given(k, a, 0)
	s := m.settings(func(r *Resource) { r.Paths = []string{filepath.Join(m.dir, "tty1")} })
	s.Resources["example.com/modem"] = Resource{Paths: []string{filepath.Join(m.dir, "tty0")}, Count: 1}
	next := m.keeper(s)
	take(next, a)
	m.expect(next, a, "c tty0")
	if got := m.given(next, a, 0); got != "/dev/zero as tty1 rw" {
		t.Errorf("given %s", got)
	}
	m.expect(next, a, "c tty1")
}

// The larger of two versions counts, as they never run at the same time.
func TestASmallerVersionFreesNothingUntilTheFormerIsGone(t *testing.T) {
	m := newMachine(t, "tty0=null", "tty1=zero")
	k := m.keeper(m.settings())
	take(k, pod("a/1 c=2"))
	take(k, pod("a/2 c=1"))
	if r := k.Room(pod("b c=1")); r == nil {
		t.Error("the former version still has it")
	}
	k.Keep("default/a", []string{"a2"})
	if r := k.Room(pod("b c=1")); r != nil {
		t.Error(r)
	}
}

func TestTheSameVersionWithOtherRequests(t *testing.T) {
	m := newMachine(t, "tty0=null", "tty1=zero")
	k := m.keeper(m.settings())
	for _, row := range []struct{ requests, want string }{{"c=2", "c tty0, c tty1"}, {"c=1", "c tty0"}, {"d=1", "d tty0"}, {"c=0", ""}} {
		p := pod("a/1 " + row.requests)
		if r := take(k, p); r != nil {
			t.Error(r)
		}
		m.expect(k, p, row.want)
		k.Clear("default/a")
		if n := len(k.table.held); (n == 0) != (row.want == "") {
			t.Errorf("%s: %d requests have something", row.requests, n)
		}
	}
}

func TestPodsThatExchangeDevices(t *testing.T) {
	m := newMachine(t, "tty0=null", "tty1=zero", "tty2=full")
	k := m.keeper(m.settings())
	take(k, pod("a/1 c=1"))
	take(k, pod("b/1 c=2"))
	a, b := pod("a/2 c=2"), pod("b/2 c=1")
	if r := k.Room(a); r == nil {
		t.Error("there is room beside the other")
	}
	if r := k.RoomTogether([]*v1.Pod{b, a}, []string{"default/a", "default/b"}); r != nil {
		t.Error(r)
	}
	if r := k.RoomTogether([]*v1.Pod{b, pod("a/2 c=3")}, []string{"default/a", "default/b"}); r == nil {
		t.Error("there are four")
	}
	m.expect(k, a, "")
}

func TestAnotherAgentHasTheSameAssignments(t *testing.T) {
	m := newMachine(t, "tty0=null", "tty1=zero")
	k := m.keeper(m.settings())
	take(k, pod("a c=1"))
	b := pod("b c=1")
	take(k, b)
	k.Keep("default/a", nil)
	if got := m.given(k, b, 0); got != "/dev/zero as tty1 rw" {
		t.Errorf("given %s", got)
	}
	next := m.keeper(m.settings())
	m.expect(next, b, "c tty1")
	next.KeepAll(map[string][]string{"default/b": {"b"}})
	m.expect(next, b, "c tty1")
	other := m.settings()
	other.Resources = map[string]Resource{"example.com/other": {Paths: []string{"/dev/null"}, Count: 1}}
	last := m.keeper(other)
	last.KeepAll(nil)
	if n := len(last.table.held); n != 0 {
		t.Errorf("%d requests of a resource that the settings do not have", n)
	}
	if len(m.says) > 0 {
		t.Errorf("said %q", m.says)
	}
}

// The next agent has other settings, in which the resource has another name. What runs has the device
// until its container is made again.
func TestADeviceOfAResourceThatIsGone(t *testing.T) {
	m := newMachine(t, "tty0=null")
	k := m.keeper(m.settings())
	a := pod("a c=1")
	take(k, a)
	m.given(k, a, 0)
	s := m.settings()
	s.Resources = map[string]Resource{"example.com/modem": s.Resources[serial]}
	next := m.keeper(s)
	take(next, a)
	next.KeepAll(map[string][]string{"default/a": {"a"}})
	b := pod("b c=0")
	b.Spec.Containers[0].Resources.Limits["example.com/modem"] = resource.MustParse("1")
	const want = "OutOfexample.com/modem: Node didn't have enough resource: example.com/modem, requested: 1, used: 1, capacity: 1: default/a has tty0"
	if got := m.refused(next.Room(b)); got != want {
		t.Errorf("another pod: %q", got)
	}
	if got := m.given(next, a, 0); got != "" {
		t.Errorf("given %s", got)
	}
	if r := next.Room(b); r != nil {
		t.Error(r)
	}
}

// A container that has a device by two resources is one user of it.
func TestOneContainerIsOneUser(t *testing.T) {
	m := newMachine(t, "tty0=null", "modem=null")
	s := m.settings(func(r *Resource) { r.Count = 2 })
	s.Resources["example.com/modem"] = Resource{Paths: []string{filepath.Join(m.dir, "modem")}, Count: 2}
	k := m.keeper(s)
	both := pod("a c=1")
	both.Spec.Containers[0].Resources.Limits["example.com/modem"] = resource.MustParse("1")
	take(k, both)
	if r := k.Room(pod("b c=1")); r != nil {
		t.Error(r)
	}
}

// Which containers run at the same time is known again once their pods are admitted: until then all of
// a version count.
func TestAnotherAgentCountsTheUsersOfADevice(t *testing.T) {
	m := newMachine(t, "tty0=null")
	s := m.settings(func(r *Resource) { r.Count = 2 })
	k := m.keeper(s)
	a := pod("a i:i=1 c=1")
	take(k, a)
	m.given(k, a, 0)
	next := m.keeper(s)
	if r := next.Room(pod("b c=1")); r == nil {
		t.Error("another pod gets it before that is known")
	}
	take(next, a)
	if r := next.Room(pod("b c=1")); r != nil {
		t.Error(r)
	}
}

func TestDamagedAssignmentsAreMadeAgain(t *testing.T) {
	m := newMachine(t, "tty0=null")
	s := m.settings()
	if err := os.WriteFile(s.Path, []byte(`{"sum":"0123456789abcdef","devices":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	k := m.keeper(s)
	if len(m.says) != 1 || take(k, pod("a c=1")) != nil {
		t.Errorf("said %q", m.says)
	}
}

// A container is not made before it is on disk which devices it has.
func TestWhatIsGivenIsOnDisk(t *testing.T) {
	m := newMachine(t, "tty0=null")
	s := m.settings()
	s.Path = filepath.Join(m.dir, "later", "devices.json")
	k := m.keeper(s)
	a := pod("a c=1")
	take(k, a)
	if got := m.given(k, a, 0); !strings.HasPrefix(got, "which devices containers have is not on disk: ") {
		t.Errorf("given %s", got)
	}
	if err := os.Mkdir(filepath.Dir(s.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := m.given(k, a, 0); got != "/dev/null as tty0 rw" {
		t.Errorf("given %s", got)
	}
	if text, err := os.ReadFile(s.Path); err != nil || string(text) != k.table.text() {
		t.Errorf("written: %s, %v", text, err)
	}
}

// What runs stays; a container that is made again gets another device if its own is gone, and its
// own if it is back.
func TestADeviceThatIsGone(t *testing.T) {
	m := newMachine(t, "tty0=null")
	k := m.keeper(m.settings())
	a := pod("a c=1")
	take(k, a)
	m.disconnect("tty0")
	if !k.take(Look(k.settings)) || k.take(Look(k.settings)) {
		t.Error("it is not known that a device is gone")
	}
	m.expect(k, a, "c tty0")
	if got := k.List(); len(got) != 1 || !got[0].Missing || !slices.Equal(got[0].Holders, []string{"default/a/c"}) {
		t.Errorf("%+v", got)
	}
	if got := m.given(k, a, 0); !strings.Contains(got, "nothing is at tty*: connect the device") {
		t.Errorf("given %s", got)
	}
	m.expect(k, a, "c tty0")
	m.connect("tty5=zero")
	k.take(Look(k.settings))
	if got := m.given(k, a, 0); got != "/dev/zero as tty5 rw" {
		t.Errorf("given %s", got)
	}
}

// It is gone, and that was not seen yet.
func TestADeviceThatIsGoneUnseen(t *testing.T) {
	m := newMachine(t, "tty0=null")
	k := m.keeper(m.settings())
	a := pod("a c=1")
	take(k, a)
	m.disconnect("tty0")
	if got := m.given(k, a, 0); got != "the device tty0 is not there: connect it, or correct its path" {
		t.Errorf("given %s", got)
	}
	if k.take(k.table.machine) {
		t.Error("it is back")
	}
	m.connect("tty0=null")
	if !k.take(k.table.machine) || len(k.missing) > 0 {
		t.Error("it is not back")
	}
}

func TestWhatIsRequestedByName(t *testing.T) {
	m := newMachine(t, "tty0=null", "fuse=zero")
	if err := os.MkdirAll(filepath.Join(m.dir, "cdi"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"a.json": `{"cdiVersion": "0.6.0", "kind": "example.com/gpu", "devices": [{"name": "0"}, {"name": "all"}]}`, "b.yaml": "kind: example.com/cam\ndevices: [{name: x}]\n", "c.json": "{", "d.txt": "kind: example.com/no\ndevices: [{name: x}]\n"} {
		if err := os.WriteFile(filepath.Join(m.dir, "cdi", file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k := m.keeper(m.settings(func(r *Resource) { r.CDI = []string{"example.com/gpu=0"} }))
	noSettings := m.keeper(Settings{SpecDirs: k.settings.SpecDirs})
	take(k, pod("holder c=1"))
	at := func(name string) string { return "podman.io/device=" + m.dir + "/" + name }
	for _, row := range []struct{ request, want string }{
		{at("fuse"), "/dev/zero as fuse rwm"},
		{at("fuse:/dev/fuse:r"), "/dev/zero as /dev/fuse r"},
		{at("none"), "the device none is not there: connect it, or correct its path"},
		{at("cdi"), "cdi is no device: it is a folder: name the devices in it"},
		{"example.com/gpu=all", "example.com/gpu=all"},
		{"example.com/cam=x", "example.com/cam=x"},
		{"example.com/cam=y", "no CDI specification in cdi has example.com/cam=y: add it with the tool of the device's maker, or correct the name"},
		{"example.com/no=x", "no CDI specification in cdi has example.com/no=x: add it with the tool of the device's maker, or correct the name"},
	} {
		// The container's name ends at the first =.
		p := pod("a c=" + row.request)
		for _, k := range []*Keeper{k, noSettings} {
			if r := take(k, p); r != nil {
				t.Errorf("%s: %v", row.request, r)
			}
			if got := strings.ReplaceAll(m.given(k, p, 0), m.dir+"/", ""); got != row.want {
				t.Errorf("%s: given %s, not %s", row.request, got, row.want)
			}
			if err := k.LookAt(p, podspec.AllContainers(p)); err != nil && strings.ReplaceAll(err.Error(), m.dir+"/", "") != row.want || err == nil && strings.Contains(row.want, "correct") {
				t.Errorf("%s: %v", row.request, err)
			}
		}
	}
	const used = "DeviceInUse: the device tty0 is not free: default/holder has tty0"
	if got := m.refused(k.Room(pod("a c=" + at("tty0")))); got != used {
		t.Errorf("one of the settings: %s", got)
	}
	if r := noSettings.Room(pod("a c=" + at("tty0"))); r != nil {
		t.Errorf("without settings: %v", r)
	}
	if r := take(k, pod("a c=example.com/gpu=0")); r != nil {
		t.Error(r)
	}
	if got := m.refused(k.Room(pod("b c=example.com/gpu=0"))); got != "DeviceInUse: the device example.com/gpu=0 is not free: default/a has example.com/gpu=0" {
		t.Errorf("a CDI device of the settings: %s", got)
	}
}

// What is requested by name needs a number, which is no count.
func TestZeroOfADeviceRequestsNothing(t *testing.T) {
	m := newMachine(t, "fuse=zero")
	k := m.keeper(m.settings())
	p := pod("a c=0")
	p.Spec.Containers[0].Resources.Limits[v1.ResourceName("podman.io/device="+m.dir+"/fuse")] = resource.MustParse("0")
	if got := m.given(k, p, 0); got != "" || k.Concern(p) {
		t.Errorf("given %s", got)
	}
}

// A device of the settings is counted, too, where a container names it by a link that they do not have.
// The link is followed when the container is made, not in the sync loop.
func TestALinkToADeviceOfTheSettingsIsCounted(t *testing.T) {
	m := newMachine(t, "tty0=null", "tty1=zero", "modem=null")
	k := m.keeper(m.settings())
	named := "podman.io/device=" + m.dir + "/modem"
	holder, a, b := pod("holder c=1"), pod("a c="+named), pod("b c="+named)
	take(k, holder)
	take(k, a)
	const used = "the device modem is not free: default/holder has tty0"
	if got := strings.ReplaceAll(m.given(k, a, 0), m.dir+"/", ""); got != used {
		t.Errorf("given %s", got)
	}
	if err := k.LookAt(a, podspec.AllContainers(a)); err == nil || strings.ReplaceAll(err.Error(), m.dir+"/", "") != used {
		t.Errorf("an update is let start with %v", err)
	}
	k.Keep("default/holder", nil)
	if got := m.given(k, a, 0); got != "/dev/null as modem rwm" {
		t.Errorf("given %s", got)
	}
	for range 2 { // the next agent knows it, too
		if got := strings.ReplaceAll(m.given(k, b, 0), m.dir+"/", ""); got != "the device modem is not free: default/a has tty0" {
			t.Errorf("another pod is given %s", got)
		}
		take(k, holder)
		m.expect(k, holder, "c tty1")
		k = m.keeper(m.settings())
		take(k, a)
	}
}

func TestAnnotationsGiveCDIDevicesToAllContainers(t *testing.T) {
	m := newMachine(t)
	k := m.keeper(Settings{SpecDirs: []string{m.dir}})
	p := pod("a c=0 d=0")
	p.Annotations = map[string]string{"cdi.k8s.io/cams": "example.com/cam=x"}
	if got := m.given(k, p, 1); !strings.HasPrefix(got, "no CDI specification in") || !k.Concern(p) || k.Concern(pod("a c=1")) {
		t.Errorf("given %s", got)
	}
	if err := os.WriteFile(filepath.Join(m.dir, "a.json"), []byte(`{"kind": "example.com/cam", "devices": [{"name": "x"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for container := range 2 {
		if got := m.given(k, p, container); got != "example.com/cam=x" {
			t.Errorf("given %s", got)
		}
	}
}

// A CDI device of the settings is counted for the pod whose annotations give it to all containers.
func TestCDIDevicesOfAnnotationsAreCounted(t *testing.T) {
	m := newMachine(t)
	if err := os.WriteFile(filepath.Join(m.dir, "a.json"), []byte(`{"kind": "example.com/gpu", "devices": [{"name": "0"}, {"name": "1"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	k := m.keeper(Settings{SpecDirs: []string{m.dir}, Path: filepath.Join(m.dir, "devices"), Resources: map[string]Resource{serial: {CDI: []string{"example.com/gpu=0", "example.com/gpu=1"}, Count: 1}}})
	annotated := func(text string) *v1.Pod {
		p := pod(text)
		p.Annotations = map[string]string{"cdi.k8s.io/gpus": "example.com/gpu=0"}
		return p
	}
	a := annotated("a c=0 d=0")
	if r := take(k, a); r != nil {
		t.Fatal(r)
	}
	for container := range 2 {
		if got := m.given(k, a, container); got != "example.com/gpu=0" {
			t.Errorf("given %s", got)
		}
	}
	if got := k.List()[0]; !slices.Equal(got.Holders, []string{"default/a"}) {
		t.Errorf("reported as %+v", got)
	}
	if got := m.refused(k.Room(annotated("b c=0"))); got != "DeviceInUse: the device example.com/gpu=0 is not free: default/a has example.com/gpu=0" {
		t.Errorf("another pod with the annotation: %q", got)
	}
	b := pod("b c=1")
	take(k, b)
	if got := m.given(k, b, 0); got != "example.com/gpu=1" {
		t.Errorf("another pod is given %s", got)
	}
	if r := k.Room(annotated("a/2 c=0")); r != nil {
		t.Errorf("the next version: %v", r)
	}
	if r := k.Room(annotated("a/2 c=example.com/gpu=0 d=0")); r != nil {
		t.Errorf("a version of which a container requests it, too: %v", r)
	}
}

func TestCapacityAndHolders(t *testing.T) {
	m := newMachine(t, "tty0=null", "tty1=zero")
	s := m.settings(func(r *Resource) { r.Count = 2 })
	s.Resources["example.com/shared"] = Resource{Paths: []string{"/dev/full"}}
	s.Resources["example.com/none"] = Resource{Paths: []string{m.dir + "/none"}, Count: 1}
	k := m.keeper(s)
	take(k, pod("b c=1"))
	take(k, pod("a c=1"))
	capacity := k.Capacity(7)
	got := fmt.Sprint(capacity.Name(serial, "").Value(), capacity.Name("example.com/shared", "").Value(), capacity.Name("example.com/none", "").Value())
	if got != "4 7 0" {
		t.Errorf("capacity is %s", got)
	}
	want := fmt.Sprintf("[{%s %s/tty0 false [default/a/c default/b/c]} {%[1]s %[2]s/tty1 false []} {example.com/shared /dev/full false []}]", serial, m.dir)
	if got := fmt.Sprint(k.List()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if all := k.Allocatable(); len(all) != 2 || len(all[serial]) != 2 {
		t.Errorf("allocatable are %v", all)
	}
}

func TestNoKeeperGivesNothing(t *testing.T) {
	var k *Keeper
	p := pod("a c=1")
	g, err := k.Give(p, &p.Spec.Containers[0])
	if k.Room(p) != nil || take(k, p) != nil || k.Keep("default/a", nil) || k.LookAt(p, podspec.AllContainers(p)) != nil || err != nil || len(g.Devices)+len(g.CDI)+len(k.List())+len(k.Capacity(1)) > 0 || k.Came() != nil {
		t.Errorf("%+v, %v", g, err)
	}
}

// It is counted from when its specification is there, which may be after the pod was admitted.
func TestACDIDeviceOfAnnotationsThatComesLaterIsCounted(t *testing.T) {
	m := newMachine(t)
	k := m.keeper(Settings{SpecDirs: []string{m.dir}, Path: filepath.Join(m.dir, "devices"), Resources: map[string]Resource{serial: {CDI: []string{"example.com/gpu=0"}, Count: 1}}})
	a, b := pod("a c=0"), pod("b c=1")
	a.Annotations = map[string]string{"cdi.k8s.io/gpus": "example.com/gpu=0"}
	if r := take(k, a); r != nil {
		t.Fatal(r)
	}
	if got := m.given(k, a, 0); !strings.HasPrefix(got, "no CDI specification in") {
		t.Errorf("given %s", got)
	}
	if err := os.WriteFile(filepath.Join(m.dir, "a.json"), []byte(`{"kind": "example.com/gpu", "devices": [{"name": "0"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	k.Look()
	if got := m.given(k, a, 0); got != "example.com/gpu=0" {
		t.Errorf("given %s", got)
	}
	if k.Room(b) == nil {
		t.Error("another pod gets it, too")
	}
	k.Keep("default/a", nil)
	if r := take(k, b); r != nil {
		t.Error(r)
	}
	take(k, a)
	if got := m.given(k, a, 0); !strings.HasPrefix(got, "the device example.com/gpu=0 is not free") {
		t.Errorf("given %s", got)
	}
}
