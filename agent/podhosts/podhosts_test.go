package podhosts

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/podspec"
	"monopod/agent/status"
	"monopod/agent/volume"
)

// rig is a Keeper that does not run.
type rig struct {
	*testing.T
	*Keeper
	log    bytes.Buffer
	panics int
}

func newRig(t *testing.T, root string, former ...*checkpoint.Checkpoint) *rig {
	r := &rig{T: t}
	log := slog.New(slog.NewTextHandler(&r.log, nil))
	store, err := status.Open(filepath.Join(root, "status"), log)
	r.must(err)
	t.Cleanup(func() { store.Close(context.Background()) })
	r.Keeper = New(Config{Store: store, Root: root, Host: func() *podspec.Host { return &podspec.Host{} }, Suffix: "-n",
		On: func() bool { return true }, Former: former, Fault: func() { r.panics++ }, Log: log})
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// runs reports a pod that runs, and returns it. Its uid is its name.
func (r *rig) runs(name, ip string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-n", UID: types.UID(name)},
		Status: v1.PodStatus{Phase: v1.PodRunning, PodIP: ip, PodIPs: []v1.PodIP{{IP: ip}},
			Conditions: []v1.PodCondition{{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue}}}}
	r.config.Store.SetPod("default/"+p.Name, p)
	return p
}

// starts writes a pod's file, as when a container starts, and returns its path.
func (r *rig) starts(p *v1.Pod) (path string) {
	r.Helper()
	path = volume.HostsPath(r.config.Root, string(p.UID))
	r.must(os.MkdirAll(filepath.Dir(path), 0o750))
	r.must(r.Write(path, p, []string{p.Status.PodIP}, podspec.EtcHosts(p, []string{p.Status.PodIP}, r.config.Host())))
	return path
}

func (r *rig) read(path string) string {
	r.Helper()
	b, err := os.ReadFile(path)
	r.must(err)
	return string(b)
}

// An agent is killed at any byte of the write, which made the file longer or shorter.
func TestATornFileIsCompleted(t *testing.T) {
	r := newRig(t, t.TempDir())
	path := r.starts(r.runs("web", "10.1.0.2"))
	r.must(os.WriteFile(path, []byte(r.read(path)+"192.0.2.9\tmine\n"), 0o644))
	short := r.read(path)
	r.runs("db", "10.1.0.3")
	if !r.pass(t.Context()) {
		t.Fatal(r.log.String())
	}
	long := r.read(path)
	if !strings.HasSuffix(long, "mine\n") || !strings.Contains(long, "10.1.0.3\tdb db.default\n") {
		t.Fatalf("it is\n%s", long)
	}
	for _, row := range []struct{ from, to string }{{short, long}, {long, short}} {
		for at := 0; at <= len(row.to); at += 7 {
			from := row.from[:min(len(row.from), len(row.to))]
			torn := row.to[:at] + from[min(at, len(from)):]
			r.must(os.WriteFile(path, []byte(torn), 0o644))
			r.must(os.WriteFile(nextOf(path), []byte(row.to), 0o600))
			r.done = 0
			r.fileOf("web").sum = 0
			if !r.pass(t.Context()) || r.read(path) != long || checkpoint.Exists(nextOf(path)) {
				t.Fatalf("after %d bytes it was\n%s\nand is\n%s\n%s", at, torn, r.read(path), r.log.String())
			}
		}
	}
}

// A write that was completed is not started once more: a container may have added lines.
func TestACompleteFileIsNotWrittenAgain(t *testing.T) {
	r := newRig(t, t.TempDir())
	path := r.starts(r.runs("web", "10.1.0.2"))
	r.must(os.WriteFile(nextOf(path), []byte(r.read(path)), 0o600))
	want := r.read(path) + "192.0.2.9\tmine\n"
	r.must(os.WriteFile(path, []byte(want), 0o644))
	r.fileOf("web").sum = 0
	if !r.pass(t.Context()) || r.read(path) != want || checkpoint.Exists(nextOf(path)) {
		t.Errorf("it is\n%s\nwant\n%s", r.read(path), want)
	}
}

// A container's start completes a torn file, too, and whatever a container did to it.
func TestAStartMakesTheFileWhole(t *testing.T) {
	r := newRig(t, t.TempDir())
	web := r.runs("web", "10.1.0.2")
	path := r.starts(web)
	want := r.read(path)
	for name, spoil := range map[string]func() error{
		"torn": func() error {
			return os.WriteFile(nextOf(path), []byte("x"), 0o600)
		},
		"emptied": func() error { return os.Truncate(path, 0) },
		"huge":    func() error { return os.Truncate(path, 1<<40) },
		"closed":  func() error { return os.Chmod(path, 0o4000) },
	} {
		before, err := os.Stat(path)
		r.must(err)
		r.must(spoil())
		r.starts(web)
		now, err := os.Lstat(path)
		r.must(err)
		if r.read(path) != want || now.Mode() != 0o644 || !os.SameFile(before, now) || checkpoint.Exists(nextOf(path)) {
			t.Errorf("%s: it is %s\n%s", name, now.Mode(), r.read(path))
		}
	}
}

// A container starts without the names if only these cannot be written; they follow.
func TestNamesFollowAStartWithoutThem(t *testing.T) {
	r := newRig(t, t.TempDir())
	web := r.runs("web", "10.1.0.2")
	path := r.starts(web)
	want := r.read(path)
	if !r.pass(t.Context()) {
		t.Fatal(r.log.String())
	}
	r.must(os.WriteFile(path, podspec.WithHostsOfPods([]byte(want), nil), 0o644))
	inTheWay := filepath.Join(filepath.Dir(path), ".etc-hosts.next.new", "x")
	r.must(os.MkdirAll(inTheWay, 0o755))
	r.starts(web)
	if r.pass(t.Context()) || r.read(path) == want {
		t.Errorf("it is written: the test proves nothing")
	}
	r.must(os.RemoveAll(filepath.Dir(inTheWay)))
	if !r.pass(t.Context()) || r.read(path) != want {
		t.Errorf("it is\n%s\nwant\n%s", r.read(path), want)
	}
}

// What a previous agent reported counts until this one reports the pod, or removes it.
func TestPodsNotReportedYetKeepTheirNames(t *testing.T) {
	root := t.TempDir()
	r := newRig(t, root)
	db := r.runs("db", "10.1.0.3")
	path := r.starts(r.runs("web", "10.1.0.2"))
	before := r.read(path)
	r.must(r.config.Store.Close(t.Context()))

	r = newRig(t, root, &checkpoint.Checkpoint{Pod: db})
	r.runs("web", "10.1.0.2")
	if !r.pass(t.Context()) || r.read(path) != before || !strings.Contains(before, "db.default") {
		t.Errorf("it is\n%swas\n%s", r.read(path), before)
	}
	r.config.Store.RemovePod("default/db-n")
	if !r.pass(t.Context()) || strings.Contains(r.read(path), "db.default") {
		t.Errorf("once it is removed it is\n%s", r.read(path))
	}
}

// A pod's own address is known before it is reported, and others' changes keep it.
func TestANewAddressStaysUntilItIsReported(t *testing.T) {
	r := newRig(t, t.TempDir())
	web := r.runs("web", "10.1.0.2")
	unreported := web.DeepCopy()
	unreported.Status = v1.PodStatus{Phase: v1.PodPending}
	r.config.Store.SetPod("default/web-n", unreported)
	path := r.starts(web)
	r.runs("db", "10.1.0.3")
	if !r.pass(t.Context()) || !strings.Contains(r.read(path), "10.1.0.3\tdb db.default\n10.1.0.2\tweb web.default\n") {
		t.Errorf("it is\n%s", r.read(path))
	}
	gone := web.DeepCopy()
	gone.Status.Conditions[0].Status = v1.ConditionFalse
	r.runs("web", "10.1.0.2")
	r.pass(t.Context())
	r.config.Store.SetPod("default/web-n", gone)
	other := r.starts(r.runs("other", "10.1.0.4"))
	if text := r.read(other); strings.Contains(text, "10.1.0.2") {
		t.Errorf("without a sandbox it has its address still:\n%s", text)
	}
}

// A container that can take a lease keeps no other waiting.
func TestALeasedFileIsTriedAgain(t *testing.T) {
	r := newRig(t, t.TempDir())
	path := r.starts(r.runs("web", "10.1.0.2"))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	r.must(err)
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatalf("no lease: %v: the test proves nothing", err)
	}
	r.runs("db", "10.1.0.3")
	for range 3 {
		if r.pass(t.Context()) {
			t.Error("it is done")
		}
	}
	if n := strings.Count(r.log.String(), "trying again"); n != 1 {
		t.Errorf("said %d times\n%s", n, r.log.String())
	}
	f.Close()
	if !r.pass(t.Context()) || !strings.Contains(r.read(path), "db.default") {
		t.Errorf("it is\n%s", r.read(path))
	}
}

// A panic over one pod is that pod's error.
func TestAPanicConcernsOnePod(t *testing.T) {
	r := newRig(t, t.TempDir())
	path := r.starts(r.runs("web", "10.1.0.2"))
	host, calls := r.config.Host, 0
	r.config.Host = func() *podspec.Host {
		if calls++; calls == 1 {
			panic("no")
		}
		return host()
	}
	r.runs("db", "10.1.0.3") // the first to be looked at
	if r.pass(t.Context()) || r.panics != 1 || !strings.Contains(r.read(path), "db.default") {
		t.Errorf("%d panics, it is\n%s", r.panics, r.read(path))
	}
}
