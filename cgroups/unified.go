package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// missing returns the controllers that the machine has and a cgroup does not (v2).
func (t *tree) missing(path string) []string {
	text, _ := read(filepath.Join(t.all[0], path, "cgroup.controllers"))
	has := strings.Fields(text)
	var out []string
	for _, c := range governed {
		if t.dirs[c] != "" && !slices.Contains(has, c) {
			out = append(out, c)
		}
	}
	return out
}

// makeUnified creates a v2 cgroup level by level and delegates all controllers from each to the
// next: systemd withdraws them now and then.
func (t *tree) makeUnified(path string) error {
	var refused error
	level := t.all[0]
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		refused = errors.Join(refused, t.handOn(level))
		level = filepath.Join(level, part)
		if err := t.mkdir(level); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if lacks := t.missing(path); len(lacks) > 0 {
		return fmt.Errorf("%s lacks the controllers %s: %w", level, strings.Join(lacks, ", "), refused)
	}
	return nil
}

// handOn delegates all controllers of the root to the cgroups directly under a folder: in one write
// or, as one of them may be refused, one by one.
func (t *tree) handOn(dir string) error {
	control := filepath.Join(dir, "cgroup.subtree_control")
	has, err := read(control)
	if err != nil {
		return err
	}
	var lacks []string
	for _, c := range slices.Sorted(maps.Keys(t.dirs)) {
		if !slices.Contains(strings.Fields(has), c) {
			lacks = append(lacks, "+"+c)
		}
	}
	if len(lacks) == 0 || write(control, strings.Join(lacks, " ")) == nil {
		return nil
	}
	for _, c := range lacks {
		err = errors.Join(err, write(control, c))
	}
	return err
}
