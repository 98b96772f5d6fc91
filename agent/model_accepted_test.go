package agent

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"

	"monopod/agent/checkpoint"
	"monopod/manifests"
)

// accepted returns the version of each pod name that an agent would find accepted on disk now.
func (w *walk) accepted() map[manifests.Key]*checkpoint.Checkpoint {
	var all []*checkpoint.Checkpoint
	for _, name := range []string{"pod.json", checkpoint.NextFile} {
		files, _ := filepath.Glob(filepath.Join(w.dir, "pods", "*", name))
		for _, file := range files {
			c := &checkpoint.Checkpoint{}
			b, err := os.ReadFile(file)
			if err == nil && json.Unmarshal(b, c) == nil {
				c.Next = name == checkpoint.NextFile
				all = append(all, c)
			}
		}
	}
	return checkpoint.Accepted(all)
}

// keepAccepted remembers which names have an accepted version, as all is well.
func (w *walk) keepAccepted() {
	w.lasts = map[manifests.Key]bool{}
	for key := range w.accepted() {
		w.lasts[key] = w.offered[key] != nil
	}
	maps.DeleteFunc(w.lasts, func(_ manifests.Key, is bool) bool { return !is })
}

// isAccepted checks that each name that had an accepted version, and was offered ever since, has
// one for the agent that comes next, whenever the one before died.
func (w *walk) isAccepted() {
	w.Helper()
	now := w.accepted()
	for key := range w.lasts {
		if now[key] == nil {
			w.Fatalf("no version of %s is accepted, though its manifest was there all the time\nthe runtime has\n%s", key, w.Runtime)
		}
	}
}
