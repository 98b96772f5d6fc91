package status

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/manifests/poduid"
)

// hashRunning returns the hash of the version of a reported pod whose containers are
// there, "" if none are or they are being resized.
func hashRunning(p *v1.Pod) poduid.ContentHash {
	there := func(c v1.ContainerStatus) bool { return c.ContainerID != "" }
	s := &p.Status
	if slices.ContainsFunc(s.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodResizeInProgress && c.Status == v1.ConditionTrue }) {
		return ""
	}
	if s.Phase == v1.PodRunning || s.Phase == v1.PodSucceeded ||
		slices.ContainsFunc(s.InitContainerStatuses, there) || slices.ContainsFunc(s.ContainerStatuses, there) {
		return poduid.HashOf(p)
	}
	return ""
}

// previousManifests reads what an earlier run reported, nil if that is no use.
func previousManifests(dir string, log *slog.Logger) *Manifests {
	var m Manifests
	err := disk.ReadOrAside(filepath.Join(dir, "manifests.json"), disk.JSON(&m))
	if err == nil {
		return &m
	}
	if !errors.Is(err, fs.ErrNotExist) {
		log.Warn("since when manifests are as they are is not known any more", "err", err)
	}
	return nil
}

// joinedManifests is a store whose report of the manifests is to be written: it is
// made when it is, for many pods change at once.
type joinedManifests Store

// MarshalJSON returns the newest report.
func (j *joinedManifests) MarshalJSON() ([]byte, error) { return encode((*Store)(j).join()) }

// rejoin has the report of the manifests made and written again, if the agent has made
// one: s.mu is held.
func (s *Store) rejoin() {
	if len(s.given.Files) > 0 {
		s.joined = nil
		s.writer.put("manifests.json", (*joinedManifests)(s))
	}
}

// join returns the report of the manifests with what follows from the reported pods.
func (s *Store) join() Manifests {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joined == nil {
		now, was := time.Now().UTC().Truncate(time.Second), s.before.since()
		m := s.given
		m.Files = slices.Clone(m.Files)
		for k := range m.Files {
			if m.Judge != nil {
				m.Judge(&m.Files[k])
			}
			s.joinFile(&m.Files[k], was, now)
		}
		m.Judge = nil
		s.joined = &m
		if len(m.Files) > 0 {
			s.before = s.joined
		}
	}
	return *s.joined
}

// joinFile fills in what runs of a file's pods, and since when all is as it is.
func (s *Store) joinFile(f *File, was map[string]time.Time, now time.Time) {
	since := func(key string) time.Time {
		if t, ok := was[key]; ok {
			return t
		}
		return now
	}
	f.Versions = slices.Clone(f.Versions)
	for k := range f.Versions {
		v := &f.Versions[k]
		if p := s.pods[v.Pod].Pod; p != nil {
			v.Running = hashRunning(p)
		}
		if v.State == Accepted && v.Running != "" && v.Running != v.Hash {
			v.State, v.Reason, v.Waiting = Waiting, "the version before it still runs", v.Hash
		}
		if v.Since.IsZero() {
			v.Since = since(v.mark(f.Path))
		}
		f.State = Worse(f.State, v.State)
	}
	if f.State != "" && f.Since.IsZero() {
		f.Since = since(f.mark())
	}
}

// since returns since when what it reports is so, by marks.
func (m *Manifests) since() map[string]time.Time {
	all := map[string]time.Time{}
	if m == nil {
		return all
	}
	for k := range m.Files {
		f := &m.Files[k]
		all[f.mark()] = f.Since
		for _, v := range f.Versions {
			all[v.mark(f.Path)] = v.Since
		}
	}
	maps.DeleteFunc(all, func(_ string, t time.Time) bool { return t.IsZero() })
	return all
}

// mark tells files, their contents and states apart.
func (f *File) mark() string {
	return strings.Join([]string{f.Path, string(f.State), f.SHA256}, "\x00")
}

// mark tells versions and their states apart.
func (v *Version) mark(path string) string {
	parts := []string{path, v.Pod, string(v.State), string(v.Hash), v.By}
	if v.State == Rejected {
		parts = append(parts, v.Reason)
	}
	return strings.Join(parts, "\x00")
}
