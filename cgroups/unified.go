package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
// or, as one of them may be refused, one by one. With processes in the folder that would delegate
// cpu and not memory, and leave those below in an invalid state: then none is delegated.
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
	if len(lacks) == 0 {
		return nil
	}
	refused := t.handOnAtOnce(dir, strings.Join(lacks, " "))
	if refused == nil || errors.Is(refused, syscall.EBUSY) {
		return refused
	}
	for _, c := range lacks {
		err = errors.Join(err, t.write(control, c))
	}
	return err
}

// handOnAtOnce delegates controllers, or none of them. Processes of a container make room for them;
// if processes are in the way, the error is EBUSY.
func (t *tree) handOnAtOnce(dir, controllers string) error {
	for try := 1; ; try++ {
		err := t.write(filepath.Join(dir, "cgroup.subtree_control"), controllers)
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		if !t.isContainers(dir) {
			return fmt.Errorf("%s has processes of its own, and so the kernel delegates no controllers below it: move them to another cgroup: %w", dir, err)
		}
		if try > vacateTries {
			return fmt.Errorf("%s gets processes again and again, and so the kernel delegates no controllers below it: %w", dir, err)
		}
		if failed := t.vacate(dir); failed != nil {
			return fmt.Errorf("%w: the processes of this container are not moved aside: %w", err, failed)
		}
	}
}
