package agent

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/config"
	"monopod/cri/critest"
)

// restartsOfCI is how often a container is restarted where MONOPOD_RESTARTS does not say.
const restartsOfCI = 300

// weight is what an agent takes.
type weight struct {
	heap, files, bytes, containers, goroutines int
}

// A container that crashes all the time, and fills its log before, takes no more memory, files and
// disk after many restarts than after some.
func TestRestartsWithoutEndTakeNoMoreAndMore(t *testing.T) {
	restarts := restartsOfCI
	if asked := os.Getenv("MONOPOD_RESTARTS"); asked != "" {
		n, err := strconv.Atoi(asked)
		noErr(t, err)
		restarts = n
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {monopod.backoff-first: 1s, monopod.backoff-max: 1s}}\n" +
		"spec: {containers: [{name: c, image: 'img:1'}]}\n"
	prepare := func(r *rig) {
		r.dir = quickDir(t)
		r.configure = func(c *config.Config) { c.LogMaxSize = resource.MustParse("1Ki") }
	}
	liveWith(t, prepare, func(r *rig) {
		r.CountOnly()
		line := strings.Repeat("x", 1000)
		r.Program("c", critest.ExitsAfter(15*time.Second, 1).Logs(line, line)) // the log is rotated meanwhile
		r.want(pod)
		for r.restarts() < restarts/10 {
			r.after(time.Minute)
		}
		some := r.weigh()
		for r.restarts() < restarts {
			r.after(time.Minute)
		}
		many := r.weigh()
		r.Logf("after %d restarts %+v, after %d %+v; the log was reopened %d times", restarts/10, some, r.restarts(), many, r.Count("ReopenContainerLog"))
		if r.Count("ReopenContainerLog") < restarts/4 {
			r.Error("the log was hardly ever rotated")
		}
		if many.files > some.files+5 || many.containers > some.containers+1 || many.goroutines > some.goroutines+5 {
			r.Error("it takes more files, containers or goroutines")
		}
		if many.bytes > some.bytes+some.bytes/4 || many.heap > some.heap+512<<10 {
			r.Error("it takes more bytes on disk or in memory")
		}
	})
}

// restarts returns how many containers were made after the first.
func (r *rig) restarts() int { return r.Count("CreateContainer") - 1 }

// weigh returns what the agent takes at this moment. Its log is the test's, and does not count.
func (r *rig) weigh() (w weight) {
	r.log.drop()
	for range 3 { // what finalizers free, too
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.heap, w.goroutines, w.containers = int(m.HeapAlloc), runtime.NumGoroutine(), len(r.Containers())
	noErr(r.T, filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			w.files++
			w.bytes += int(info.Size())
		}
		return nil
	}))
	return w
}

// drop forgets what was logged.
func (l *lines) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
