package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/backoff"
	"monopod/agent/disk"
)

func testPod(name string, phase v1.PodPhase) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "abc"},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "app", Image: "x", Env: []v1.EnvVar{{Name: "PASSWORD", Value: "a<b"}},
			Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": resource.MustParse("1")}},
		}}},
		Status: v1.PodStatus{Phase: phase},
	}
}

// open returns a store that is closed with the test, and its log.
func open(t *testing.T, dir string) (*Store, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	s, err := Open(dir, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s, log
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

func readPod(t *testing.T, dir, file string) *v1.Pod {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pods", file))
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Pod{}
	if err := json.Unmarshal(data, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var n []string
	for _, e := range entries {
		n = append(n, e.Name())
	}
	return strings.Join(n, " ")
}

func TestOpenRemovesWhatAKilledWriterLeft(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pods"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{dir, filepath.Join(dir, "pods")} {
		if err := os.WriteFile(filepath.Join(folder, disk.TempPrefix+"1"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir)
	if got := names(t, dir) + names(t, filepath.Join(dir, "pods")); strings.Contains(got, disk.TempPrefix) {
		t.Errorf("the folders hold %q", got)
	}
}

func TestReportsAreKeptInMemoryAndOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root", "status")
	s, _ := open(t, dir)
	s.SetPod("default/web-n", testPod("web-n", v1.PodRunning))
	s.SetPod("default/api-n", testPod("api-n", v1.PodPending))
	s.SetPod("aaa/zzz", testPod("zzz", v1.PodPending))
	s.SetManifests(Manifests{Dir: "/m", Files: []File{{Path: "/m/a.yaml"}}})
	s.SetRuntime(Runtime{Up: true, Name: "containerd"})

	if p, ok := s.Pod("default/web-n"); !ok || p.Status.Phase != v1.PodRunning {
		t.Errorf("Pod = %v, %v", p, ok)
	}
	var order []string
	for _, p := range s.Pods() {
		order = append(order, p.Name)
	}
	if got := strings.Join(order, " "); got != "zzz api-n web-n" {
		t.Errorf("Pods are in order %q", got)
	}
	if got := s.Manifests().Dir; got != "/m" {
		t.Errorf("Manifests().Dir = %q", got)
	}
	if got := s.Runtime().Name; got != "containerd" {
		t.Errorf("Runtime().Name = %q", got)
	}

	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := readPod(t, dir, "default_web-n.json")
	if p.Kind != "Pod" || p.APIVersion != "v1" || p.Status.Phase != v1.PodRunning || p.Spec.Containers[0].Env[0].Value != "a<b" {
		t.Errorf("the file says %v", p)
	}
	if got := names(t, dir); got != "manifests.json pods runtime.json" {
		t.Errorf("status holds %q", got)
	}
	for path, want := range map[string]os.FileMode{"": 0o700, "pods": 0o700, "manifests.json": 0o600, "pods/default_web-n.json": 0o600} {
		if fi, err := os.Stat(filepath.Join(dir, path)); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%q: mode %v, %v; want %v", path, fi.Mode(), err, want)
		}
	}
}

func TestAFileOfAnEarlierRunIsReadUntilTheFirstReport(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir)
	s.SetPod("default/web", testPod("web", v1.PodRunning))
	s.SetPod("default/gone", testPod("gone", v1.PodRunning))
	if _, ok := s.Previous("default/web"); ok {
		t.Error("this run's report is not an earlier one")
	}
	s.Close(t.Context())

	s, log := open(t, dir)
	if p, ok := s.Previous("default/web"); !ok || p.Status.Phase != v1.PodRunning {
		t.Errorf("Previous = %v, %v", p, ok)
	}
	if _, ok := s.Previous("default/never"); ok {
		t.Error("a pod that never was has an earlier report")
	}
	s.RemovePod("default/gone")
	if _, ok := s.Previous("default/gone"); ok {
		t.Error("a removed pod has an earlier report")
	}
	if err := os.WriteFile(filepath.Join(dir, "pods", "default_torn.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Previous("default/torn"); ok || log.count("pod=default/torn") != 1 {
		t.Error("a torn file is no report, and is said")
	}
}

func TestRemovedPodsLeaveNoFile(t *testing.T) {
	rows := []struct {
		name string
		do   func(*Store)
		want string
	}{
		{"an earlier run's files stay by themselves", func(*Store) {}, "default_a.json default_b.json"},
		{"one is removed", func(s *Store) { s.RemovePod("default/a") }, "default_b.json"},
		{"one that was never written is removed", func(s *Store) { s.RemovePod("x/y") }, "default_a.json default_b.json"},
		{"reported and removed at once", func(s *Store) {
			s.SetPod("default/c", testPod("c", v1.PodRunning))
			s.RemovePod("default/c")
		}, "default_a.json default_b.json"},
		{"a sweep leaves its keys", func(s *Store) { s.Sweep([]string{"default/b"}) }, "default_b.json"},
		{"a sweep leaves what is reported before or after", func(s *Store) {
			s.SetPod("default/a", testPod("a", v1.PodRunning))
			s.Sweep(nil)
			s.SetPod("default/b", testPod("b", v1.PodFailed))
		}, "default_a.json default_b.json"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			s, _ := open(t, dir)
			s.SetPod("default/a", testPod("a", v1.PodRunning))
			s.SetPod("default/b", testPod("b", v1.PodRunning))
			s.Close(t.Context())
			s, _ = open(t, dir)
			r.do(s)
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := names(t, filepath.Join(dir, "pods")); got != r.want {
				t.Errorf("pods holds %q, want %q", got, r.want)
			}
		})
	}
}

func TestManyReportsBecomeOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s, _ := open(t, dir)
		for i := range 50 {
			p := testPod("web", v1.PodRunning)
			p.Status.Message = fmt.Sprint(i)
			s.SetPod("default/web", p)
			time.Sleep(gatherMost / 60)
		}
		if got := names(t, filepath.Join(dir, "pods")); got != "" {
			t.Errorf("written while more reports came: %s", got)
		}
		time.Sleep(2 * gather)
		first := stat(t, dir)
		if got := readPod(t, dir, "default_web.json").Status.Message; got != "49" {
			t.Errorf("the file has report %s, want the last", got)
		}
		p := testPod("web", v1.PodRunning)
		p.Status.Message = "49"
		s.SetPod("default/web", p)
		time.Sleep(2 * gather)
		if !os.SameFile(first, stat(t, dir)) {
			t.Error("an equal report was written")
		}
		if got, _ := s.Pod("default/web"); got == p {
			t.Error("an equal report replaced the other")
		}
		s.Close(t.Context())
	})
}

// A pod that never rests has a file all the same.
func TestReportsWithoutEndAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s, _ := open(t, dir)
		n := writes(t, filepath.Join(dir, "pods", "default_web.json"), 60, func(k int) {
			for part := range 5 {
				p := testPod("web", v1.PodRunning)
				p.Status.Message = fmt.Sprint(k, part)
				s.SetPod("default/web", p)
				time.Sleep(gather / 10)
			}
		})
		if n < 20 || n > 60 {
			t.Errorf("written %d times in a minute", n)
		}
	})
}

// Reports are made again after a power cut: none of them is synced.
func TestReportsAreNotSynced(t *testing.T) {
	s, _ := open(t, t.TempDir())
	before := disk.WrittenSoFar()
	s.SetPod("default/web", testPod("web", v1.PodRunning))
	s.SetManifests(Manifests{Dir: "/m"})
	s.SetRuntime(Runtime{Up: true, Name: "containerd"})
	s.RemovePod("default/api")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := disk.WrittenSoFar()
	if now.Files-before.Files != 3 || now.Bytes-before.Bytes < 100 || now.Syncs != before.Syncs {
		t.Errorf("from %+v to %+v", before, now)
	}
}

// A power cut leaves an empty file of a report that was new.
func TestAnEmptyReportIsNone(t *testing.T) {
	dir := t.TempDir()
	s, log := open(t, dir)
	for _, text := range []string{"", "\x00\x00\x00"} {
		if err := os.WriteFile(filepath.Join(dir, "pods", "default_web.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, ok := s.Previous("default/web"); ok || log.count("WARN") != 0 {
			t.Errorf("%q is %v, and it says:\n%s", text, p, log.b.String())
		}
	}
}

func stat(t *testing.T, dir string) os.FileInfo {
	t.Helper()
	fi, err := os.Stat(filepath.Join(dir, "pods", "default_web.json"))
	if err != nil {
		t.Fatal(err)
	}
	return fi
}

func TestAFailedWriteIsSaidOnceAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s, log := open(t, dir)
		told := 0
		s.OnTrouble(func(error) { told++ })
		pods := filepath.Join(dir, "pods")
		if err := os.Remove(pods); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(pods, nil, 0o600); err != nil { // as good as a broken disk, for root too
			t.Fatal(err)
		}
		for i := range 3 {
			s.SetPod(fmt.Sprintf("default/%d", i), testPod("x", v1.PodRunning))
		}
		s.SetManifests(Manifests{Dir: "/m"})
		time.Sleep(10 * time.Second)
		s.SetPod("default/0", testPod("x", v1.PodSucceeded))
		time.Sleep(10*time.Minute + 5*time.Second)
		if n := log.count("level=WARN"); n != 1 || told != 1 {
			t.Errorf("said %d times, want once:\n%s", n, log.b.String())
		}
		if got := names(t, dir); got != "manifests.json pods" {
			t.Errorf("status holds %q: one bad file holds up the others, or litter stayed", got)
		}
		if r := s.Manifests().Reports; len(r) != 1 || !strings.Contains(r[0].Message, "status files are older than what is shown") {
			t.Errorf("the report says %v", r)
		}
		os.Remove(pods) // and the folder is made again
		s.SetPod("default/0", testPod("x", v1.PodFailed))
		time.Sleep(2 * gather)
		if _, err := os.Stat(pods); err == nil {
			t.Error("a new report cut the back-off short")
		}
		time.Sleep(backoff.Most)
		if got := names(t, pods); got != "default_0.json default_1.json default_2.json" {
			t.Errorf("pods holds %q after recovery", got)
		}
		if got := readPod(t, dir, "default_0.json").Status.Phase; got != v1.PodFailed {
			t.Errorf("the file has phase %s, want the last", got)
		}
		if r := s.Manifests().Reports; len(r) != 0 {
			t.Errorf("after recovery the report says %v", r)
		}
		if n := log.count("written again"); n != 1 {
			t.Errorf("recovery said %d times, want once", n)
		}
		os.RemoveAll(pods)
		os.WriteFile(pods, nil, 0o600)
		s.SetPod("default/0", testPod("x", v1.PodRunning))
		time.Sleep(time.Minute)
		if n := log.count("level=WARN"); n != 2 {
			t.Errorf("after the second failure said %d times, want twice:\n%s", n, log.b.String())
		}
		os.Remove(pods)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseSaysWhatIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir)
	pods := filepath.Join(dir, "pods")
	if err := errors.Join(os.Remove(pods), os.WriteFile(pods, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.SetPod("default/web", testPod("web", v1.PodRunning))
	err := s.Close(t.Context())
	want := "write status before the end: 1 files of " + dir + " are not written"
	if err == nil || err.Error() != want {
		t.Errorf("Close = %v, want %s", err, want)
	}
	s.SetPod("default/late", testPod("late", v1.PodRunning))
	if _, ok := s.Pod("default/late"); !ok {
		t.Error("a report after Close is not kept in memory")
	}
}

func TestAPodWithALongNameHasAFile(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir)
	long := strings.Repeat("n", 63) + "/" + strings.Repeat("p", 253)
	s.SetPod(long, testPod("p", v1.PodRunning))
	s.SetPod(long[:len(long)-1]+"q", testPod("q", v1.PodRunning))
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, _ = open(t, dir)
	if p, ok := s.Previous(long); !ok || p.Name != "p" {
		t.Errorf("Previous = %v, %v", p, ok)
	}
	s.RemovePod(long)
	s.Sweep(nil)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("it is not removed: %v", err)
	}
}

func TestReportsFromManyGoroutines(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			key := fmt.Sprintf("default/%d", i)
			for range 20 {
				s.SetPod(key, testPod("x", v1.PodPending))
				s.RemovePod(key)
				s.SetPod(key, testPod("x", v1.PodRunning))
				s.Pods()
				s.Sweep(nil)
				s.Previous(key)
			}
		})
	}
	wg.Wait()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if got := readPod(t, dir, fmt.Sprintf("default_%d.json", i)).Status.Phase; got != v1.PodRunning {
			t.Errorf("pod %d is written as %s", i, got)
		}
	}
}

func TestOpenRefusesAFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(filepath.Join(file, "status"), slog.New(slog.NewTextHandler(io.Discard, nil)))
	want := "open status folder: mkdir " + file + ": not a directory"
	if err == nil || err.Error() != want {
		t.Errorf("Open = %v, want %s", err, want)
	}
}

// venom is a report over which encoding panics.
type venom struct{}

func (venom) MarshalJSON() ([]byte, error) { panic("venom") }

func TestAPanicOverOneReportLeavesTheOthers(t *testing.T) {
	dir := t.TempDir()
	s, log := open(t, dir)
	s.writer.put("pods/a.json", venom{})
	s.SetPod("default/web", testPod("web", v1.PodRunning))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Close(ctx); err == nil || !strings.Contains(err.Error(), "1 files") {
		t.Errorf("closed with %v", err)
	}
	if p := readPod(t, dir, "default_web.json"); p.Status.Phase != v1.PodRunning {
		t.Errorf("status %+v", p.Status)
	}
	if log.count("stack=") != 1 {
		t.Errorf("said %d times with a stack", log.count("stack="))
	}
}

func BenchmarkSetPod(b *testing.B) {
	s, err := Open(b.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	pod := testPod("web", v1.PodRunning)
	b.ReportAllocs()
	for k := 0; b.Loop(); k++ {
		next := *pod
		next.Status.Message = fmt.Sprint(k % 2)
		s.SetPod("default/web", &next)
	}
}

// Who asks for the last report while this run makes its first one gets one of the two.
func TestTheLastReportIsThereWhileTheFirstOfThisRunComes(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	const pods = 300
	key := func(k int) string { return fmt.Sprintf("default/p%d", k) }
	report := func(s *Store, k int) {
		s.SetReport(key(k), Report{Pod: testPod(fmt.Sprintf("p%d", k), v1.PodRunning)})
	}
	before, err := Open(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	for k := range pods {
		report(before, k)
	}
	before.Close(t.Context())
	s, err := Open(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	var all sync.WaitGroup
	for k := range pods {
		begin := make(chan struct{})
		all.Go(func() { <-begin; report(s, k) })
		all.Go(func() {
			close(begin)
			p, ok := s.Last(key(k))
			if !ok || p == nil {
				t.Errorf("%s was never reported", key(k))
			}
		})
	}
	all.Wait()
	if p, ok := s.Last("default/other"); ok {
		t.Errorf("of a pod that never was it has %+v", p)
	}
}
