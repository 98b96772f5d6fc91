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

// filings saves the records of trials on disk in the background. It belongs to the sync loop's
// goroutine.
type filings struct {
	shared  *worker.Pool
	store   *status.Store
	pods    *records
	limits  func(*manifests.Pod) update.Limits // what a version on trial must meet
	running *sync.WaitGroup

	unsaved []*podRecord // the records whose trials differ from those on disk
	failed  []*podRecord // the records whose write failed, to be retried
	saving  bool
	saved   chan []*filing // the records that were written
}

// add marks the trial of a record to be saved.
func (s *filings) add(r *podRecord) {
	if !r.unsaved {
		r.unsaved = true
		s.unsaved = append(s.unsaved, r)
	}
}

// save starts to save the changed trials, unless a save is running. The result is sent to saved.
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

// wereSaved handles the result.
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

// tick retries the failed writes.
func (s *filings) tick() {
	s.unsaved = append(s.unsaved, s.failed...)
	s.failed = nil
}

// leave saves the progress of the watches when the agent ends.
func (s *filings) leave(ctx context.Context) {
	last := s.filingsOf(slices.Collect(s.pods.onTrial()))
	s.running.Go(func() { s.write(ctx, last) })
}

// write writes records. Any goroutine may call it.
func (s *filings) write(ctx context.Context, all []*filing) {
	var writes []func() error
	for _, f := range all { // each filing has its own error
		writes = append(writes, func() error { f.write(s.shared.Disk.Root, s.reported); return nil })
	}
	_ = diskWrites{s.shared}.await(ctx, "records of updates", writes...)
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

// reported returns the last report of a pod, by this agent or the previous one; nil: none.
func (s *filings) reported(key manifests.Key) *v1.Pod {
	p, ok := s.store.Last(key.String())
	if !ok {
		return nil
	}
	return p
}

// filing is a record that is written to disk in the background.
type filing struct {
	rollout.Filed
	record *podRecord
	file   *checkpoint.Update // nil: the record is removed
	stable time.Duration      // how long a version must be ready to count as working
	logs   string             // the folder of the pods' logs
	Key    manifests.Key
}

// write saves the record. reported returns the last report of the pod. Any goroutine may call it.
func (f *filing) write(root *checkpoint.Root, reported func(manifests.Key) *v1.Pod) {
	if f.file != nil && f.Trial.Pinned == nil {
		f.Images = f.ran(root, reported(f.Key))
		f.file.Images = f.Images
		_, all := update.Pin(f.Trial.Former.Pod, f.Images, nil)
		if f.Unfit = !all; f.Unfit {
			f.file = nil
		}
	}
	if f.file != nil && f.Trial.Reason != "" && f.Trial.Asked == nil && !f.Trial.Judged { // otherwise the failed version is removed, or being removed
		f.Output = f.output(reported(f.Key))
		f.file.Output = f.Output
	}
	f.Err = root.SaveUpdate(f.Key, f.file)
}

// ran returns the images that the former version ran, by container; nil: it never worked, or they
// are not known. p is the last report of the pod. After a reboot that is often of a version that is
// just starting, so the record that it was ready before counts, too.
func (f *filing) ran(root *checkpoint.Root, p *v1.Pod) map[string]string {
	was := f.wasReady(root)
	if p != nil && p.UID == f.Trial.Former.UID {
		images := update.ImagesOf(&p.Status)
		_, all := update.Pin(f.Trial.Former.Pod, images, nil)
		if all && (was != nil || f.Trial.Worked || update.HasWorked(&p.Status, time.Now(), f.stable)) {
			return images
		}
	}
	if was != nil {
		return was.Images
	}
	return nil
}

// wasReady returns the record that the former version was ready and stayed so, and no other one since;
// nil: there is none that can be read.
func (f *filing) wasReady(root *checkpoint.Root) *checkpoint.Past {
	past, err := root.History(f.Key)
	if err != nil || len(past) == 0 || rollout.Remembered(past, f.Trial.Former).Digest != past[0].Version().Digest {
		return nil
	}
	return &past[0]
}

// Bounds of the output that is kept of a container whose version failed.
const (
	outputLines = 20
	outputBytes = 4 << 10
)

// output returns the last output of the containers that made their version fail.
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
