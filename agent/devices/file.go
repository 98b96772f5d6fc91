package devices

import (
	"cmp"
	"encoding/json"
	"slices"

	"monopod/agent/disk"
)

// record is a line of the file of the assignments.
type record struct {
	Pod       string   `json:"pod"` // namespace/name
	Version   string   `json:"uid"`
	Container string   `json:"container"`
	Resource  string   `json:"resource"`
	Devices   []string `json:"devices"` // paths, or CDI names
}

// file is the content of the file of the assignments.
type file struct {
	Devices []record `json:"devices"`
}

// text returns the table as the file has it: the same for the same table.
func (t *Table) text() string {
	f := file{Devices: []record{}}
	for h, s := range t.held {
		f.Devices = append(f.Devices, record{h.Pod, h.Version, h.Container, h.Resource, s.ids})
	}
	slices.SortFunc(f.Devices, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Resource, b.Resource))
	})
	b, _ := json.Marshal(f) // strings
	return string(append(disk.Seal(b), '\n'))
}

// restore takes the assignments of a file. Until a pod is admitted, all of its containers count as if
// they ran at the same time.
func (t *Table) restore(path string) error {
	var f file
	err := disk.ReadOrAside(path, disk.JSON(&f))
	if err != nil {
		return err
	}
	for k, r := range f.Devices {
		t.held[holding{r.Pod, r.Version, r.Container, r.Resource}] = share{r.Devices, turn{at: k}}
	}
	return nil
}
