package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/podlog"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/worker"
	"monopod/manifests"
)

// filings saves the records of trials on disk, beside the sync loop, to whose goroutine it
// belongs.
type filings struct {
	shared  *worker.Pool
	store   *status.Store
	pods    *records
	limits  func(*manifests.Pod) update.Limits // what is asked of a version
	running *sync.WaitGroup

	unsaved []*podRecord // whose trials are not as they are on disk
	failed  []*podRecord // which the disk did not take, and takes later perhaps
	saving  bool
	saved   chan []*filing // the records as written
}

// add has the trial of a record saved.
func (s *filings) add(r *podRecord) {
	if !r.unsaved {
		r.unsaved = true
		s.unsaved = append(s.unsaved, r)
	}
}

// save begins to save the trials that have changed, unless others are being saved. The result
// comes over saved.
func (s *filings) save(ctx context.Context) {
	if s.saving || len(s.unsaved) == 0 {
		return
	}
	s.saving = true
	all := s.filingsOf(s.unsaved)
	s.unsaved = nil
	s.running.Go(func() {
		s.write(ctx, all)
		select {
		case s.saved <- all:
		case <-ctx.Done():
		}
	})
}

// wereSaved takes the result.
func (s *filings) wereSaved(all []*filing) {
	s.saving = false
	for _, f := range all {
		r := f.record
		r.saving = false
		s.pods.drop(f.Key)
		if f.Err != nil && !r.unsaved {
			r.unsaved = true
			s.failed = append(s.failed, r)
		}
	}
}

// tick tries again what the disk did not take.
func (s *filings) tick() {
	s.unsaved = append(s.unsaved, s.failed...)
	s.failed = nil
}

// leave saves how far the watches are, as the agent ends.
func (s *filings) leave(ctx context.Context) {
	last := s.filingsOf(slices.Collect(s.pods.onTrial()))
	s.running.Go(func() { s.write(ctx, last) })
}

// write writes records. Any goroutine may call it.
func (s *filings) write(ctx context.Context, all []*filing) {
	_ = diskWrites{s.shared}.await(ctx, "records of updates", func() error {
		for _, f := range all {
			f.write(s.shared.Disk.Root, s.reported)
		}
		return nil // each has its own
	})
}

func (s *filings) filingsOf(of []*podRecord) (out []*filing) {
	for _, r := range of {
		r.unsaved, r.saving = false, true
		f := &filing{record: r, Key: r.Key, logs: s.shared.Disk.PodLogs, Filed: rollout.Filed{Trial: r.Trial}}
		if r.Trial != nil && !r.Trial.Unfit {
			f.file, f.stable = r.Trial.Record(s.shared.Disk.Machine.Boot.ID), s.limits(r.Trial.Former).Stable
		}
		out = append(out, f)
	}
	return out
}

// reported returns what was last reported of a pod, by this agent or the one before; nil:
// nothing.
func (s *filings) reported(key manifests.Key) *v1.Pod {
	p, ok := s.store.Last(key.String())
	if !ok {
		return nil
	}
	return p
}

// filing is a record that is written to disk beside the sync loop.
type filing struct {
	rollout.Filed
	record *podRecord
	file   *checkpoint.Update // nil: it is removed
	stable time.Duration      // for how long a version must be ready to work
	logs   string             // the folder of the pods' logs
	Key    manifests.Key
}

// write saves the record. reported returns what was last reported of the pod. Any goroutine may
// call it.
func (f *filing) write(root *checkpoint.Root, reported func(manifests.Key) *v1.Pod) {
	if f.file != nil && f.Trial.Pinned == nil {
		p, all := reported(f.Key), false
		if p != nil && p.UID == f.Trial.Former.UID {
			f.Images = update.ImagesOf(&p.Status)
			_, all = update.Pin(f.Trial.Former.Pod, f.Images, nil)
			all = all && (f.Trial.Worked || update.HasWorked(&p.Status, time.Now(), f.stable))
		}
		f.file.Images = f.Images
		if f.Unfit = !all; f.Unfit {
			f.file = nil
		}
	}
	if f.file != nil && f.Trial.Reason != "" && f.Trial.Asked == nil && !f.Trial.Judged { // else what failed is gone, or going
		f.Output = f.output(reported(f.Key))
		f.file.Output = f.Output
	}
	f.Err = root.SaveUpdate(f.Key, f.file)
}

// What is kept of the output of a container that made its version give way.
const (
	outputLines = 20
	outputBytes = 4 << 10
)

// output returns what the containers of a version wrote last that made it give way.
func (f *filing) output(p *v1.Pod) string {
	if p == nil {
		return ""
	}
	var all []string
	for _, name := range update.Troubled(&p.Status, f.Trial.Ended) {
		dir := podlog.Dir(f.logs, p, name)
		attempt, err := podlog.AttemptOf(dir, podlog.StatusOf(p, name), false)
		if err != nil {
			continue
		}
		text := podlog.Last(filepath.Join(dir, fmt.Sprintf("%d.log", attempt)), outputLines, outputBytes)
		if text = strings.TrimRight(text, "\n"); text != "" {
			all = append(all, name+": "+strings.ReplaceAll(text, "\n", "\n"+name+": "))
		}
	}
	return strings.Join(all, "\n")
}
