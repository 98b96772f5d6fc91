package cp

import (
	"fmt"
	"path"
	"strings"
)

// Place is a file or folder: on this machine, or of a pod.
type Place struct {
	Pod  string // as for client.FindContainer; "": this machine
	Path string
}

// ParsePlace reads PATH, POD:PATH or NAMESPACE/POD:PATH. A path with a colon in it is on this
// machine if it begins with / or a dot.
func ParsePlace(text string) (Place, error) {
	pod, file, remote := strings.Cut(text, ":")
	switch {
	case !remote || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "."):
		pod, file = "", text
	case pod == "":
		return Place{}, fmt.Errorf("%q names no pod: want POD:PATH, or ./%s for a file of this machine", text, text)
	}
	if file == "" {
		return Place{}, fmt.Errorf("%q names no file: want PATH or POD:PATH", text)
	}
	return Place{pod, file}, nil
}

// split splits a path in a container into the folder in which tar works and the name that it takes
// there: "." is the folder itself, also through a link.
func split(file string) (dir, base string) {
	dir, base = path.Split(file)
	if base == "" || base == "." || base == ".." {
		return file, "."
	}
	if dir == "" {
		dir = "."
	}
	return dir, base
}
