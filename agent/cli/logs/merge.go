package logs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"

	"monopod/agent/podlog"
)

// lineAhead is how many lines of a container are read before they are printed.
const lineAhead = 64

// item is one result of reading a container: a line, that everything that existed at first is
// read, or the end.
type item struct {
	from   int
	line   podlog.Line
	caught bool
	over   bool
	err    error
}

// show prints the logs of containers.
func (o *Options) show(ctx context.Context, out io.Writer, all []*container) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	if o.Follow {
		watcher := podlog.NewWatcher()
		defer watcher.Close()
		for _, c := range all {
			c.read.Watcher = watcher
		}
	}
	defer group.Wait()
	defer cancel()
	if o.Follow && !o.Previous {
		for _, c := range all {
			c.end = &end{over: make(chan struct{})}
		}
		f := newFollowing(o, all)
		group.Go(func() { f.run(ctx) })
	}
	p := newPrinter(out, all, *o)
	if len(all) == 1 {
		all[0].read.Idle = p.flush
		err := all[0].follow(ctx, o.PodLogs, all[0].read, func(l podlog.Line) error { return p.print(0, l) })
		return cmp.Or(err, p.close())
	}
	first, live := make([]chan item, len(all)), make(chan item, lineAhead)
	for k, c := range all {
		first[k] = make(chan item, lineAhead)
		group.Go(func() { c.run(ctx, o.PodLogs, k, first[k], live) })
	}
	return cmp.Or(merge(ctx, p, first, live), p.close())
}

// follow reads the container's log, and those of the pods that replace its own.
func (c *container) follow(ctx context.Context, podLogs string, o podlog.Options, emit func(podlog.Line) error) error {
	dir := c.dir
	for at := c.end; ; at = at.next {
		if at != nil {
			o.Ended = at.over
		}
		if err := gone(podlog.Read(ctx, dir, o, emit)); err != nil || at == nil {
			return err
		}
		select {
		case <-at.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if at.next == nil {
			return nil
		}
		dir, o = podlog.Dir(podLogs, at.successor, c.name), podlog.Options{Which: podlog.All, Follow: true, Idle: o.Idle, Watcher: o.Watcher}
	}
}

// gone drops the error of a log that was removed while it was read.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// run reads a container's log and sends it: to first what existed, then to live.
func (c *container) run(ctx context.Context, podLogs string, k int, first, live chan<- item) {
	to := first
	send := func(i item) error {
		i.from = k
		select {
		case to <- i:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	o := c.read
	o.Idle = func() error {
		if to == live {
			return nil
		}
		err := send(item{caught: true})
		to = live
		return err
	}
	err := c.follow(ctx, podLogs, o, func(l podlog.Line) error {
		l.Text = bytes.Clone(l.Text)
		return send(item{line: l})
	})
	if to == first { // it ended early
		send(item{caught: true})
		to = live
	}
	send(item{over: true, err: err})
}

// merge prints what existed in the order of time, then what is written.
func merge(ctx context.Context, p *printer, first []chan item, live <-chan item) error {
	receive := func(from <-chan item) (item, error) {
		select {
		case i := <-from:
			return i, nil
		case <-ctx.Done():
			return item{}, context.Cause(ctx)
		}
	}
	heads := make([]item, len(first))
	for k := range first {
		var err error
		if heads[k], err = receive(first[k]); err != nil {
			return err
		}
	}
	for {
		next := -1
		for k := range heads {
			if !heads[k].caught && (next < 0 || heads[k].line.Time.Before(heads[next].line.Time)) {
				next = k
			}
		}
		if next < 0 {
			break
		}
		if err := p.print(next, heads[next].line); err != nil {
			return err
		}
		var err error
		if heads[next], err = receive(first[next]); err != nil {
			return err
		}
	}
	var failed error
	for left := len(first); left > 0; {
		if len(live) == 0 {
			if err := p.flush(); err != nil {
				return err
			}
		}
		i, err := receive(live)
		if err != nil {
			return err
		}
		if i.over {
			left--
			failed = errors.Join(failed, i.err)
			continue
		}
		if err := p.print(i.from, i.line); err != nil {
			return err
		}
	}
	return failed
}
