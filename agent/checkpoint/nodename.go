package checkpoint

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"monopod/agent/disk"
)

// nodeName is the file in the root dir that holds the node name of its last agent.
const nodeName = "node-name"

// NodeName returns the node name of the last agent of a root dir; "" if there was none, or if both
// of its files are damaged, which KeepNodeName reports.
func NodeName(dir string) (name string, err error) {
	again, err := disk.ReadTwin(filepath.Join(dir, nodeName), parseNodeName(&name))
	damaged := (*disk.Damaged)(nil)
	switch {
	case again != nil:
		return name, nil
	case errors.As(err, &damaged), errors.Is(err, fs.ErrNotExist):
		return "", nil
	}
	return name, err
}

// parseNodeName returns the func that parses the file.
func parseNodeName(to *string) func([]byte) error {
	return func(b []byte) error {
		if *to = strings.TrimSpace(string(b)); *to == "" {
			return errors.New("it is empty")
		}
		return nil
	}
}

// KeepNodeName makes later agents of the root dir use this node name, unless their settings have
// another.
func (r *Root) KeepNodeName(name string) {
	path, kept := r.Path(nodeName), ""
	err := r.readTwins(path, 0o644, "the node name was damaged, and is as before", parseNodeName(&kept))
	if err != nil || kept != name {
		r.Trouble = cmp.Or(r.Trouble, writeTwins(path, []byte(name+"\n"), 0o644))
	}
}
