package podlog

// successor returns the file that follows the open one, or the first one. newest: no file of its
// attempt follows it.
func (r *reader) successor(all []segment) (next segment, newest, ok bool) {
	if r.src != nil {
		r.identify(all)
	}
	for k, s := range all {
		if s.attempt < r.first || s.attempt > r.last || !r.behind(s) || k < len(all)-1 && r.isOld(s) {
			continue
		}
		return s, k == len(all)-1 || all[k+1].attempt != s.attempt, true
	}
	return segment{}, false, false
}

// behind reports whether a file follows the open one.
func (r *reader) behind(s segment) bool {
	if r.src == nil || s.attempt > r.src.attempt {
		return true
	}
	if s.attempt < r.src.attempt {
		return false
	}
	stamp := r.src.stamp
	if r.src.removed {
		stamp = r.src.after
	}
	if stamp == "" && !r.src.removed {
		return false
	}
	return s.stamp == "" || s.stamp > stamp
}

// identify determines whether the open file was rotated, and to which name. Of one that was
// removed since, it knows only that it came after the files before it.
func (r *reader) identify(all []segment) {
	s := r.src
	s.removed = false
	current := segment{attempt: s.attempt}
	if s.is(r.at, current) { // a rotation may have been reverted
		if s.stamp != "" {
			s.stamp, s.after = "", newestStamp(all, s.attempt)
		}
		return
	}
	if s.stamp != "" {
		return
	}
	for _, t := range all {
		if t.attempt == s.attempt && t.stamp > s.after && s.became(r.at, t) {
			s.stamp = t.stamp
			return
		}
	}
	s.removed = true
}

// isOld reports whether a file has nothing that is requested: it was last written before.
func (r *reader) isOld(s segment) bool {
	if r.src != nil || r.o.Since.IsZero() || s.stamp == "" {
		return false
	}
	i, err := r.at.Stat(s.name())
	return err == nil && i.Changed().Before(r.o.Since)
}
