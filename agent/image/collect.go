package image

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errUnknown: the manifests were not read yet, so it is not known which images pods need.
var errUnknown = errors.New("which images pods need is not known yet")

// look is what List and Collect are based on.
type look struct {
	*survey
	disk        *Disk // nil: not known
	diskErr     error
	aged, spare []*Entry
}

// look surveys the images and classifies them. keep: the history is updated.
func (c *Collector) look(ctx context.Context, keep bool) (*look, error) {
	needs, known := c.config.Needs()
	if !known {
		return nil, errUnknown
	}
	s, err := c.survey(ctx, needs)
	if err != nil {
		return nil, fmt.Errorf("look at images: %w", err)
	}
	now := time.Now()
	if keep {
		if err := c.remember(s.entries, now); c.unkept.IsNew(err) {
			c.config.Log.Warn("when images were used is not remembered", "err", err)
		}
	}
	c.date(s.entries, now)
	l := &look{survey: s}
	if d, err := c.disk(ctx); err != nil {
		l.diskErr = err
	} else {
		l.disk = &d
	}
	l.aged, l.spare = classify(s.entries, l.disk, c.Bounds(), now)
	return l, nil
}

// List returns all images with the decision on each, and the disk that holds them, nil if it is
// not known.
func (c *Collector) List(ctx context.Context) ([]*Entry, *Disk, error) {
	l, err := c.look(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	return l.entries, l.disk, nil
}

// Collect removes the images that are too old, then, while the disk is too full,
// other unused ones, least recently used first. It checks the disk after each.
func (c *Collector) Collect(ctx context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	l, err := c.look(ctx, true)
	if err != nil {
		if errors.Is(err, errUnknown) {
			err = nil
		}
		return err
	}
	full := c.Bounds().High < 100 && l.disk != nil && l.disk.Used() >= c.Bounds().High
	if full && len(l.spare) > 0 || len(l.aged) > 0 { // else a disk that stays full would cost a call for each container
		if err := c.addMounted(ctx, l.survey); err != nil {
			return fmt.Errorf("look at images: %w", err)
		}
	}
	var failed []error
	for _, e := range l.aged {
		if _, err := c.remove(ctx, l.survey, e, ForAge, e.Why); err != nil {
			failed = append(failed, err)
		}
	}
	failed = append(failed, c.makeRoom(ctx, l))
	if c.Bounds().High < 100 {
		failed = append(failed, l.diskErr)
	}
	return errors.Join(failed...)
}

// makeRoom frees the disk if it is too full. It counts as freed the images' sizes or what the disk
// reports, whichever is more: of an image that shares layers little may be freed at once.
func (c *Collector) makeRoom(ctx context.Context, l *look) error {
	if l.disk == nil || c.Bounds().High >= 100 {
		return nil
	}
	d, err := c.disk(ctx) // old images were removed meanwhile
	if err != nil {
		return err
	}
	if d.Used() < c.Bounds().High {
		c.fits(0)
		return nil
	}
	missing, freed := d.missing(c.Bounds().Low), uint64(0)
	var failed []error
	for _, e := range l.spare {
		if d.missing(c.Bounds().Low) == 0 || freed >= missing {
			break
		}
		gone, err := c.remove(ctx, l.survey, e, ForSpace, fmt.Sprintf("the disk is %d %% full", d.Used()))
		if err != nil {
			failed = append(failed, err)
		}
		if !gone {
			continue
		}
		freed += e.Size
		if d, err = c.disk(ctx); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	if d.Used() < c.Bounds().High || freed >= missing {
		c.fits(0)
	} else {
		c.fits(d.missing(c.Bounds().Low))
	}
	return errors.Join(failed...)
}

// remove removes an image, unless a pod needs it by now.
func (c *Collector) remove(ctx context.Context, s *survey, e *Entry, reason, why string) (gone bool, err error) {
	needs, _ := c.config.Needs()
	for _, n := range needs {
		if s.find(n.Image) == e {
			return false, nil
		}
	}
	if len(e.Users) > 0 {
		return false, nil
	}
	for name := range c.config.Archived() { // it may have come since the survey
		if s.find(name) == e {
			return false, nil
		}
	}
	if err := c.config.CRI.RemoveImage(ctx, e.ID); err != nil {
		return false, err
	}
	if c.config.Collected != nil {
		c.config.Collected(reason)
	}
	c.config.Log.Info("remove image", "image", e.Name(), "id", e.ID, "bytes", e.Size, "reason", why)
	return true, nil
}

// Name returns the image's name for people.
func (e *Entry) Name() string {
	for _, names := range [][]string{e.Names, e.Digests} {
		if len(names) > 0 {
			return names[0]
		}
	}
	return e.ID
}

// fits records how many bytes could not be freed, and logs when that starts and ends.
func (c *Collector) fits(short uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.short
	switch {
	case short == 0:
		c.short = Shortfall{}
	case before.Bytes == 0:
		c.short = Shortfall{Since: time.Now(), Bytes: short}
	default:
		c.short.Bytes = short
	}
	if short > 0 && before.Bytes == 0 {
		c.config.Log.Warn("the disk of the images is too full, and nothing that could go is left on it", "reason", "FreeDiskSpaceFailed", "bytes", short)
		c.config.Event("FreeDiskSpaceFailed", fmt.Sprintf("Failed to garbage collect required amount of images. %d bytes more than could be found must be freed.", short))
	}
	if short == 0 && before.Bytes > 0 {
		c.config.Log.Info("the disk of the images has room again")
	}
}
