package status

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/manifests/poduid"
)

// hashRunning returns the hash of the version of a reported pod whose containers exist, "" if none
// do or they are being resized.
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

// previousManifests reads what an earlier run reported, nil if that is unusable.
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

// joinedManifests is a store whose newest report of the manifests is to be written: the report is
// made at the write, for many pods change at once.
type joinedManifests Store

// rejoin lets the report of the manifests be made and written again, if the agent has made one:
// s.mu is held.
func (s *Store) rejoin() {
	if s.given.List != nil || len(s.given.Files) > 0 {
		s.joined = nil
		s.writer.put("manifests.json", (*joinedManifests)(s))
	}
}

// join returns the report of the manifests, completed from the reported pods.
func (s *Store) join() Manifests {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joined == nil {
		now := time.Now().UTC().Truncate(time.Second)
		m := s.given
		m.Files = s.files()
		for k := range m.Files {
			s.joinFile(&m.Files[k], s.before.file(m.Files[k].Path), now)
		}
		m.List, m.Judge = nil, nil
		s.joined = &m
		if len(m.Files) > 0 {
			s.before = s.joined
		}
	}
	return *s.joined
}

// files returns the files of the report that was given.
func (s *Store) files() []File {
	if s.given.List == nil {
		return slices.Clone(s.given.Files)
	}
	return s.given.List()
}

// joinFile fills in what runs of a file's pods, and since when everything is as it is. was: the
// file as reported before; nil: it was not. Versions that are as before are the same slice.
func (s *Store) joinFile(f, was *File, now time.Time) {
	f.Versions = append(s.versions[:0], f.Versions...)
	if s.given.Judge != nil {
		s.given.Judge(f)
	}
	for k := range f.Versions {
		v := &f.Versions[k]
		s.joinVersion(v, was, now)
		f.State = Worse(f.State, v.State)
	}
	if f.State != "" && f.Since.IsZero() {
		f.Since = cmp.Or(f.since(was), now)
	}
	s.versions = f.Versions
	if was != nil && slices.Equal(was.Versions, f.Versions) {
		f.Versions = was.Versions
	} else {
		f.Versions = slices.Clone(f.Versions)
	}
}

// joinVersion is joinFile for one version.
func (s *Store) joinVersion(v *Version, was *File, now time.Time) {
	if p := s.pods[v.Pod].Pod; p != nil {
		v.Running = hashRunning(p)
	}
	if v.State == Accepted && v.Running != "" && v.Running != v.Hash {
		v.State, v.Reason, v.Waiting = Waiting, "the version before it still runs", v.Hash
	}
	if v.Since.IsZero() {
		v.Since = cmp.Or(v.since(was), now)
	}
}

// file returns the report of a file; nil: there is none.
func (m *Manifests) file(path string) *File {
	if m == nil {
		return nil
	}
	at, is := slices.BinarySearchFunc(m.Files, path, func(f File, path string) int { return strings.Compare(f.Path, path) })
	if !is {
		return nil
	}
	return &m.Files[at]
}

// since returns since when a file has its content and state, by its former report; zero: not
// before now.
func (f *File) since(was *File) time.Time {
	if was == nil || was.State != f.State || was.SHA256 != f.SHA256 {
		return time.Time{}
	}
	return was.Since
}

// since is the same for a version in a file.
func (v *Version) since(was *File) time.Time {
	if was == nil {
		return time.Time{}
	}
	at := slices.IndexFunc(was.Versions, func(w Version) bool {
		return w.Pod == v.Pod && w.State == v.State && w.Hash == v.Hash && w.By == v.By && (v.State != Rejected || w.Reason == v.Reason)
	})
	if at < 0 {
		return time.Time{}
	}
	return was.Versions[at].Since
}
