package status

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reportOf is the report of a node at a time.
func reportOf(at time.Time, ready v1.ConditionStatus) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, kind := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeReady} {
		c := v1.NodeCondition{Type: kind, Status: ready, LastHeartbeatTime: metav1.NewTime(at)}
		n.Status.Conditions = append(n.Status.Conditions, c)
	}
	return n
}

// A heartbeat reaches the file and no fsync: an idle machine leaves its disk alone.
func TestAHeartbeatIsNotSynced(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, dir)
		syncs := 0
		s.writer.fsync = func(f *os.File) error { syncs++; return f.Sync() }
		beat := func(times int, ready v1.ConditionStatus) (n int) {
			before := syncs
			for range times {
				s.SetNode(reportOf(time.Now(), ready))
				time.Sleep(10 * time.Second)
				synctest.Wait()
			}
			return syncs - before
		}
		if n := beat(1, v1.ConditionTrue); n != 2 {
			t.Errorf("the first report was synced with %d calls, want 2: file and folder", n)
		}
		if n := beat(60, v1.ConditionTrue); n != 0 {
			t.Errorf("60 heartbeats were synced with %d calls", n)
		}
		last := time.Now().Add(-10 * time.Second).UTC().Format(time.RFC3339)
		if b, err := os.ReadFile(filepath.Join(dir, "node.json")); strings.Count(string(b), last) != 2 {
			t.Errorf("the file does not have the last heartbeat %s: %v\n%s", last, err, b)
		}
		if n := beat(1, v1.ConditionFalse); n != 2 {
			t.Errorf("another condition was synced with %d calls, want 2", n)
		}
	})
}

// What must be synced is, even if a heartbeat comes before it is written.
func TestAHeartbeatHidesNoReport(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, dir)
		syncs := 0
		s.writer.fsync = func(f *os.File) error { syncs++; return f.Sync() }
		s.SetNode(reportOf(time.Now(), v1.ConditionTrue))
		s.SetNode(reportOf(time.Now().Add(time.Second), v1.ConditionTrue))
		time.Sleep(time.Second)
		synctest.Wait()
		if syncs != 2 {
			t.Errorf("%d calls of fsync, want 2", syncs)
		}
	})
}
