package podresolv

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/podspec"
)

// rig is a Keeper that looks when the test says so, and one pod.
type rig struct {
	*testing.T
	*Keeper
	file, root string
	pod        *v1.Pod
	on         bool
	problem    string
	log        bytes.Buffer
}

func newRig(t *testing.T, text string) *rig {
	r := &rig{T: t, file: filepath.Join(t.TempDir(), "resolv.conf"), root: t.TempDir(), on: true}
	r.pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}, Spec: v1.PodSpec{DNSPolicy: v1.DNSDefault}}
	r.must(os.MkdirAll(filepath.Dir(Path(r.root, r.pod)), 0o700))
	r.must(os.WriteFile(r.file, []byte(text), 0o644))
	r.Keeper = New(Config{Root: r.root, File: r.file, Host: func() *podspec.Host {
		return &podspec.Host{Resolv: podspec.ResolvConf{Servers: []string{"192.0.2.99"}}}
	},
		Pods: func() []*v1.Pod { return []*v1.Pod{r.pod} }, On: func() bool { return r.on }, Problem: func(text string) { r.problem = text },
		Fault: func() { t.Error("a panic") }, Log: slog.New(slog.NewTextHandler(&r.log, nil))})
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// starts starts a container of the pod, and returns what it sees as /etc/resolv.conf.
func (r *rig) starts() string {
	r.Helper()
	path, err := r.Write(r.pod)
	r.must(err)
	return path
}

// replace replaces the machine's file by rename.
func (r *rig) replace(text string) {
	r.Helper()
	r.must(os.WriteFile(r.file+".new", []byte(text), 0o644))
	r.must(os.Rename(r.file+".new", r.file))
}

// has checks the pod's file after the Keeper looked twice.
func (r *rig) has(want string) {
	r.Helper()
	r.pass()
	r.pass()
	got, err := os.ReadFile(Path(r.root, r.pod))
	if err != nil || string(got) != want {
		r.Errorf("the pod has %q, %v, want %q", got, err, want)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

const first, second = "search a.example\nnameserver 192.0.2.1\noptions ndots:2\n", "nameserver 192.0.2.2\nnameserver 2001:db8::2\n"

// A container has the file mounted: it must stay the same one.
func TestAPodFollowsTheMachineInPlace(t *testing.T) {
	r := newRig(t, first)
	path := r.starts()
	r.has(first)
	was := inode(t, path)
	r.replace(second)
	r.has(second)
	elsewhere := filepath.Join(t.TempDir(), "other")
	r.must(os.WriteFile(elsewhere, []byte(first), 0o644))
	r.must(os.Remove(r.file))
	r.must(os.Symlink(elsewhere, r.file))
	r.has(first)
	r.starts()
	if is := inode(t, path); is != was {
		t.Errorf("the file is another one: %d, was %d", is, was)
	}
}

func TestAContentCountsOnceItStays(t *testing.T) {
	r := newRig(t, first)
	r.starts()
	r.has(first)
	r.replace("nameserver 192.0.2.2\n") // the first half of what is written
	r.pass()
	r.replace(second)
	r.pass()
	if got, err := os.ReadFile(Path(r.root, r.pod)); err != nil || string(got) != first {
		t.Errorf("the pod has %q, %v", got, err)
	}
	r.has(second)
}

func TestWhatIsUnusableChangesNothing(t *testing.T) {
	for text, why := range map[string]string{"": "names no name server", "search x\n": "names no name server", "nameserver\n": "without an address", "nameserver 192.0.2\n": `"192.0.2" is no address`} {
		r := newRig(t, first)
		r.starts()
		r.has(first)
		r.replace(text)
		r.has(first)
		r.has(first)
		if !strings.Contains(r.problem, why) || !strings.HasSuffix(r.problem, ": pods keep the name servers that they have") {
			t.Errorf("of %q it says %q", text, r.problem)
		}
		if n := strings.Count(r.log.String(), "pods keep"); n != 1 {
			t.Errorf("of %q it logs %d times", text, n)
		}
		r.replace(second)
		r.has(second)
		if r.problem != "" {
			t.Errorf("the problem stays: %q", r.problem)
		}
		r.must(os.Remove(r.file))
		r.has(second)
		if !strings.Contains(r.problem, "cannot be read") {
			t.Errorf("without the file it says %q", r.problem)
		}
	}
}

// The next agent, which finds an unusable file, leaves a pod what it has.
func TestTheNextAgentTakesNothingAway(t *testing.T) {
	r := newRig(t, first)
	r.starts()
	r.has(first)
	r.replace("")
	next := New(r.config)
	if path, err := next.Write(r.pod); err != nil || path != Path(r.root, r.pod) {
		t.Errorf("%q, %v", path, err)
	}
	r.has(first)
}

func TestPodsOfTheirOwnNameServersDoNotFollow(t *testing.T) {
	r := newRig(t, first)
	r.pod.Spec.DNSPolicy = v1.DNSNone
	if path := r.starts(); path != "" {
		t.Errorf("a pod of policy None has %s", path)
	}
	r.pod.Spec.DNSPolicy, r.on = v1.DNSDefault, false
	if path := r.starts(); path != "" {
		t.Errorf("without the setting a pod has %s", path)
	}
	if path, err := (*Keeper)(nil).Write(r.pod); path != "" || err != nil {
		t.Errorf("without a Keeper a pod has %s, %v", path, err)
	}
}

// Without the setting nothing wakes the Keeper but a change of it.
func TestTheKeeperSleepsUntilItIsTurnedOn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(file, []byte(first), 0o644); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		var asked, looked atomic.Int32
		k := New(Config{Root: dir, File: file, On: func() bool { asked.Add(1); return on.Load() }, Problem: func(string) {},
			Pods: func() []*v1.Pod { looked.Add(1); return nil }, Log: slog.New(slog.DiscardHandler)})
		ctx, end := context.WithCancel(t.Context())
		go k.Run(ctx)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := asked.Load(); n > 2 {
			t.Errorf("turned off it looked %d times in an hour", n)
		}
		on.Store(true)
		k.Wake()
		time.Sleep(2 * every)
		synctest.Wait()
		if looked.Load() == 0 {
			t.Error("turned on it gives pods nothing")
		}
		end()
		synctest.Wait()
	})
}

// What a pod has besides the machine's name servers stays.
func TestAPodsOwnConfigStays(t *testing.T) {
	r := newRig(t, first)
	r.pod.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"192.0.2.7"}, Searches: []string{"own.example"}}
	r.starts()
	r.has("search a.example own.example\nnameserver 192.0.2.1\nnameserver 192.0.2.7\noptions ndots:2\n")
	r.replace(second)
	r.has("search own.example\nnameserver 192.0.2.2\nnameserver 2001:db8::2\nnameserver 192.0.2.7\n")
}
