package archives

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/backoff"
	"monopod/agent/panics"
	"monopod/cri"
)

// Times of imports.
const (
	recheck  = time.Minute            // how often the runtime is asked whether it still has the images
	askAgain = 100 * time.Millisecond // CRI learns from an event what was imported
	showIn   = 10 * time.Second

	// restoreIn bounds what takes an import back. The end of the import does not interrupt that: Ctrl-C
	// would leave names with an image that may not be whole.
	restoreIn = 10 * time.Second
)

// importAll imports one archive after the other.
func (k *Keeper) importAll(ctx context.Context) {
	for ctx.Err() == nil {
		next, wait := k.next(time.Now())
		if next != nil && k.config.Up() && k.settle(ctx, next) {
			continue
		}
		if next != nil {
			wait = time.Second
		}
		again := time.NewTimer(wait)
		select {
		case <-k.woken:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
	}
}

// next returns the archive whose turn it is, those that pods wait for before the others; nil: none
// is due within wait.
func (k *Keeper) next(now time.Time) (next *entry, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wait = recheck
	for _, e := range k.all {
		at, is := e.due()
		switch {
		case !is:
		case at.After(now):
			wait = min(wait, at.Sub(now))
		case next == nil || k.before(e, next):
			next = e
		}
	}
	return next, wait
}

// due returns when an archive is to be imported, or its images looked for; false: never, as it is.
func (e *entry) due() (time.Time, bool) {
	switch {
	case e.State == Due:
		return time.Time{}, true
	case e.State == Imported:
		return e.checked.Add(recheck), true
	case e.State == Broken && !e.retry.IsZero() && len(e.Index.Images) > 0:
		return e.retry, true
	}
	return time.Time{}, false
}

// before reports whether an archive comes before another. The caller holds mu.
func (k *Keeper) before(a, b *entry) bool {
	first, second := k.isWanted(a), k.isWanted(b)
	if first != second {
		return first
	}
	return a.Path < b.Path
}

func (k *Keeper) isWanted(e *entry) bool {
	return slices.ContainsFunc(e.Index.Images, func(i Image) bool { return k.wanted[i.Name] > 0 })
}

// settle imports an archive unless the runtime has its images. It returns false if the runtime does
// not answer.
func (k *Keeper) settle(ctx context.Context, e *entry) (answered bool) {
	k.mu.Lock()
	from, sig := e.Known, e.sig
	r, known := k.record[e.Path]
	k.mu.Unlock()
	has, err := k.has(ctx, from.Index, !known || r.Is != sig)
	if err == nil && !has {
		k.change(e, sig, func() { k.set(e, Importing) })
		err = k.importOne(ctx, from, sig.Size)
		if err == nil {
			k.config.Log.Info("archive of images imported", "archive", e.Path)
		}
	}
	switch {
	case ctx.Err() != nil:
		return true
	case cri.Unavailable(err):
		k.change(e, sig, func() { k.set(e, Due) })
		return false
	}
	hasCome := err == nil && !has
	k.change(e, sig, func() { k.ended(e, err) })
	if hasCome {
		k.repeat(from)
	}
	k.save()
	if hasCome {
		k.config.Came(ctx, from.Names())
	}
	return true
}

// repeat has the later archives imported again that have names of one that was imported: of two
// archives with one name, the later one by path counts.
func (k *Keeper) repeat(from Known) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for path, other := range k.all {
		if path <= from.Path || !slices.ContainsFunc(from.Index.Images, func(i Image) bool { return other.names(i.Name) }) {
			continue
		}
		delete(k.record, path)
		k.unsaved = true
		if other.State == Imported {
			k.set(other, Due)
		}
	}
}

// change changes an archive unless another version of it came meanwhile.
func (k *Keeper) change(e *entry, sig signature, do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all[e.Path] == e && e.sig == sig {
		do()
	}
}

// ended records the end of an import. The caller holds mu.
func (k *Keeper) ended(e *entry, err error) {
	if err != nil {
		e.failures++
		e.retry = time.Now().Add(backoff.After(e.failures))
		k.fail(e, err)
		return
	}
	k.mend(e)
	e.checked = time.Now()
	k.set(e, Imported)
	if was, known := k.record[e.Path]; known && was.Is == e.sig && was.Disk == e.disk {
		return
	}
	k.record[e.Path] = imported{e.sig, e.Index, e.disk}
	k.unsaved = true
}

// save records what was imported, without mu while the disk works. An import that is not recorded is
// recorded with the next one.
func (k *Keeper) save() {
	k.mu.Lock()
	r, unsaved := maps.Clone(k.record), k.unsaved
	k.unsaved = false
	k.mu.Unlock()
	if !unsaved {
		return
	}
	if err := r.save(k.config.Record); k.unsaid.IsNew(err) {
		k.config.Log.Warn("that an archive was imported is not recorded: it is read again after a restart", "err", err)
	}
}

// has reports whether the runtime has all images of an archive. asThere: under their names it has
// the same images, and no others.
func (k *Keeper) has(ctx context.Context, index Index, asThere bool) (bool, error) {
	for _, i := range index.Images {
		is, err := k.config.CRI.Image(ctx, &rt.ImageSpec{Image: i.Name})
		if err != nil {
			return false, err
		}
		if is == nil || asThere && !sameID(is.Id, i.ID) {
			return false, nil
		}
	}
	return true, nil
}

// sameID compares ids of images: CRI-O's have no algorithm.
func sameID(a, b string) bool { return a == b || "sha256:"+a == b }

// importOne imports an archive of so many bytes. If that fails, nothing of it stays.
func (k *Keeper) importOne(ctx context.Context, from Known, size int64) (err error) {
	defer panics.Catch(&err)
	err = k.refuse(from.Path)
	if err == nil {
		err = k.room(ctx, size)
	}
	if err != nil {
		return err
	}
	importer, err := k.config.Importer(ctx, k.config.CRI)
	if err != nil {
		return err
	}
	return importFile(ctx, k.config.CRI, importer, from.Path, from.Index)
}

// importFile imports an archive whose index is known. If that fails, nothing of it stays.
func importFile(ctx context.Context, c *cri.Client, importer Importer, path string, index Index) error {
	tar, err := Open(ctx, path)
	if err != nil {
		return err
	}
	defer tar.Close()
	before, err := presentIn(ctx, c)
	if err != nil {
		return err
	}
	err = importer.Import(ctx, Source{path, index, tar})
	if err == nil {
		err = shown(ctx, c, index)
	}
	if err != nil {
		err = errors.Join(err, before.restore(ctx, c, importer, index))
	}
	return err
}

// present is what a runtime has before an import: the ids of all images, by their names, and by
// themselves.
type present map[string]string

func presentIn(ctx context.Context, c *cri.Client) (present, error) {
	all, err := c.Images(ctx)
	ids := present{}
	for _, i := range all {
		ids[i.Id] = i.Id
		for _, name := range i.RepoTags {
			ids[name] = i.Id
		}
	}
	return ids, err
}

// shown waits until the runtime shows the images that it was given.
func shown(ctx context.Context, c *cri.Client, index Index) error {
	for late := time.Now().Add(showIn); ; {
		missing := ""
		for _, i := range index.Images {
			is, err := c.Image(ctx, &rt.ImageSpec{Image: i.Name})
			if err != nil {
				return err
			}
			if is == nil || !sameID(is.Id, i.ID) {
				missing = i.Name
			}
		}
		if missing == "" {
			return nil
		}
		if time.Now().After(late) {
			return fmt.Errorf("the runtime does not show the image %s that it was given: ask it with crictl images", missing)
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// restore removes what a failed import has left: images that were not there before. Names that it
// has taken from others are given back.
func (b present) restore(ctx context.Context, c *cri.Client, importer Importer, index Index) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreIn)
	defer cancel()
	var failed []error
	for _, i := range index.Images {
		is, err := c.Image(ctx, &rt.ImageSpec{Image: i.Name})
		if err == nil && is != nil && b[is.Id] == "" {
			err = c.RemoveImage(ctx, is.Id)
		}
		was := b[i.Name]
		if err == nil && was != "" && is.GetId() != was {
			err = importer.Tag(ctx, was, i.Name)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
