package layers

import (
	"maps"
	"reflect"
	"sync"

	"monopod/manifests"
)

// records keeps the record of all folders, which is saved as one. Any goroutine may use it.
type records struct {
	mu   sync.Mutex
	all  manifests.Record
	disk func(manifests.Record) error // nil: nothing is saved
	due  bool                         // the last save failed
}

func newRecords(r manifests.Record, save func(manifests.Record) error) *records {
	all := manifests.Record{Moved: maps.Clone(r.Moved), Folders: maps.Clone(r.Folders), Given: maps.Clone(r.Given)}
	if len(r.Folders) == 0 && r.Folder != nil { // one folder before
		one := r
		one.Moved = nil
		all.Folders = map[string]manifests.Record{r.Folder.Path: one}
	}
	if all.Folders == nil {
		all.Folders = map[string]manifests.Record{}
	}
	return &records{all: all, disk: save}
}

// of returns the record of a folder.
func (r *records) of(dir string) manifests.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Folders[dir]
}

// saveOf saves the record of a folder.
func (r *records) saveOf(dir string, one manifests.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.all
	next.Folders = maps.Clone(next.Folders)
	next.Folders[dir] = one
	return r.write(next)
}

// save saves which pods have moved, and what several folders give.
func (r *records) save(moved map[string]string, given map[string][]string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.due && maps.Equal(moved, r.all.Moved) && reflect.DeepEqual(given, r.all.Given) {
		return nil
	}
	next := r.all
	next.Moved, next.Given = moved, given
	return r.write(next)
}

func (r *records) write(next manifests.Record) error {
	if r.disk != nil {
		if err := r.disk(next); err != nil {
			r.due = true
			return err
		}
	}
	r.all, r.due = next, false
	return nil
}
