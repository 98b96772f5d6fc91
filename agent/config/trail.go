package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mostLinks is how many links a path may lead through, as for the kernel.
const mostLinks = 40

// trail returns the paths by which a file can become another one: the links on the way to it, its
// folders among them, and the file itself; or, last, the first on the way that does not exist. The
// folders in which they are have no links in their own paths.
func trail(path string) (all []string) {
	here, rest := "/", elements(path)
	for links := 0; len(rest) > 0 && links <= mostLinks; {
		next := filepath.Join(here, rest[0]) // here has no links: ".." is the folder above
		rest = rest[1:]
		_, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return append(all, next)
		}
		target, err := os.Readlink(next)
		if err != nil { // no link
			here = next
			continue
		}
		links++
		all = append(all, next)
		if filepath.IsAbs(target) {
			here = "/"
		}
		rest = append(elements(target), rest...)
	}
	return append(all, here)
}

// elements splits a path into its names.
func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
