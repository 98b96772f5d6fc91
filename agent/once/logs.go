package once

import (
	"context"
	"path/filepath"
	"sync"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podlog"
)

// follower follows the logs of all containers, one goroutine for each.
type follower struct {
	print   *printer
	streams map[*v1.Pod]map[string]*stream
	unwatch func()        // ends the watches of all logs
	ended   chan struct{} // closed: nothing more will be written
	all     sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// follow starts to follow logs. It ends with ctx, or after finish, which must be called.
func follow(ctx context.Context, c Config, p *printer, streams map[*v1.Pod]map[string]*stream) *follower {
	f := &follower{print: p, streams: streams, unwatch: func() {}, ended: make(chan struct{})}
	read := c.read
	if read == nil {
		watcher := podlog.NewWatcher()
		f.unwatch = watcher.Close
		read = func(ctx context.Context, dir string, o podlog.Options, emit func(podlog.Line) error) error {
			o.Watcher = watcher
			return podlog.Read(ctx, dir, o, emit)
		}
	}
	for pod, of := range streams {
		dir := filepath.Join(c.PodLogs, pod.Namespace+"_"+pod.Name+"_"+string(pod.UID))
		for name, s := range of {
			o := podlog.Options{Which: podlog.All, Follow: true, Ended: f.ended, Idle: p.flush}
			f.all.Go(func() {
				if err := read(ctx, filepath.Join(dir, name), o, s.line); err != nil && ctx.Err() == nil {
					f.mu.Lock()
					defer f.mu.Unlock()
					f.errs = append(f.errs, err)
				}
			})
		}
	}
	return f
}

// finish waits until everything that was written is printed, and returns what could not be read.
// No container may write any more.
func (f *follower) finish() []error {
	close(f.ended)
	f.all.Wait()
	f.unwatch()
	f.print.close()
	return f.errs
}

// output returns what a container wrote, see stream.output.
func (f *follower) output(pod *v1.Pod, name string) string { return f.streams[pod][name].output() }

// tail returns the last lines of a container.
func (f *follower) tail(pod *v1.Pod, name string) []string { return f.streams[pod][name].last() }
