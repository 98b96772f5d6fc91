package status

import "time"

// Images are the images of the runtime, the pods that use them and which of them are to be
// removed.
type Images struct {
	Node   string     `json:"node"`           // with which names of pods end
	Disk   *ImageDisk `json:"disk,omitempty"` // nil: not known
	Images []Image    `json:"images"`         // as the runtime lists them

	Archives []Archive `json:"archives,omitempty"` // that give images, by path

	Missing      uint64    `json:"missing,omitempty"` // bytes that the last collection could not free
	MissingSince time.Time `json:"missingSince,omitzero"`
}

// ImageDisk is the file system that holds the images. From High percent on unused images are
// removed, until it is down to Low.
type ImageDisk struct {
	Dir         string `json:"dir"`
	Capacity    uint64 `json:"capacity"`  // bytes
	Available   uint64 `json:"available"` // bytes
	UsedPercent int    `json:"usedPercent"`
	High        int    `json:"high"` // 100: never
	Low         int    `json:"low"`
}

// Archive is a file that gives images.
type Archive struct {
	Path   string   `json:"path"`
	State  string   `json:"state"`            // being written, unread, due, importing, imported or broken
	Images []string `json:"images,omitempty"` // full names, once they are known
	Why    string   `json:"why,omitempty"`    // it is broken
}

// Image is one image.
type Image struct {
	ID        string    `json:"id"`
	Names     []string  `json:"names,omitempty"` // with tags
	Digests   []string  `json:"digests,omitempty"`
	Size      uint64    `json:"size"` // bytes, as the runtime counts them
	Pinned    bool      `json:"pinned,omitempty"`
	Archive   string    `json:"archive,omitempty"` // the file that gives it
	Users     []string  `json:"users,omitempty"`   // namespace/name of pods, "container ID" of containers without one
	FirstSeen time.Time `json:"firstSeen,omitzero"`
	LastUsed  time.Time `json:"lastUsed,omitzero"` // zero: never, as far as is known
	Collect   bool      `json:"collect"`           // it is removed with the next collection
	Why       string    `json:"why"`               // it is removed, or stays
}
