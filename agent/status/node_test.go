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

	"monopod/agent/disk"
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

// writes counts how often a file was replaced, as one looks each second.
func writes(t *testing.T, path string, seconds int, each func(second int)) (n int) {
	was, _ := os.Stat(path)
	for second := range seconds {
		each(second)
		time.Sleep(time.Second)
		synctest.Wait()
		if now, err := os.Stat(path); err == nil && (was == nil || !os.SameFile(was, now)) {
			n, was = n+1, now
		}
	}
	return n
}

// A mere heartbeat is written rarely: an idle machine leaves its flash alone.
func TestAHeartbeatIsWrittenRarely(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, nodeFile)
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, dir)
		before := disk.WrittenSoFar()
		beats := func(seconds int, ready v1.ConditionStatus) int {
			return writes(t, file, seconds, func(second int) {
				if second%10 == 0 {
					s.SetNode(reportOf(time.Now(), ready))
				}
			})
		}
		if n := beats(10, v1.ConditionTrue); n != 1 {
			t.Errorf("the first report was written %d times", n)
		}
		if n := beats(2*3600, v1.ConditionTrue); n < 11 || n > 13 {
			t.Errorf("the heartbeats of 2 hours were written %d times", n)
		}
		if n := beats(10, v1.ConditionFalse); n != 1 {
			t.Errorf("another condition was written %d times in 10 s", n)
		}
		s.SetNode(reportOf(time.Now(), v1.ConditionFalse))
		last := time.Now().UTC().Format(time.RFC3339)
		s.Close(t.Context())
		if b, err := os.ReadFile(file); strings.Count(string(b), last) != 2 {
			t.Errorf("the file does not have the last heartbeat %s: %v\n%s", last, err, b)
		}
		if n := disk.WrittenSoFar().Syncs - before.Syncs; n != 0 {
			t.Errorf("%d calls of fsync", n)
		}
	})
}

// What is new is written soon, even if heartbeats come before that.
func TestAHeartbeatPutsNoReportOff(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, dir)
		if n := writes(t, filepath.Join(dir, nodeFile), 5, func(int) { s.SetNode(reportOf(time.Now(), v1.ConditionTrue)) }); n != 1 {
			t.Errorf("written %d times in 5 s", n)
		}
	})
}

// A node that rests writes little to flash storage.
func TestAnIdleDayWritesLittle(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, dir)
		before := disk.WrittenSoFar()
		for range 24 * 60 * 6 {
			n := reportOf(time.Now(), v1.ConditionTrue)
			n.Status.NodeInfo.OSImage = strings.Repeat("x", 5_000)
			s.SetNode(n)
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		now := disk.WrittenSoFar()
		if n := now.Bytes - before.Bytes; n > 1_000_000 || n < 500_000 || now.Syncs != before.Syncs {
			t.Errorf("%d bytes, %d calls of fsync", n, now.Syncs-before.Syncs)
		}
	})
}
