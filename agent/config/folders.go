package config

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
)

// Folders are paths of folders of manifests. In a file one of them may stand for a list of one.
type Folders []string

// errFolders quotes nothing of the value.
var errFolders = errors.New("a path, or a list of paths")

// UnmarshalJSON accepts a path instead of a list.
func (f *Folders) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*f = nil
		if one != "" {
			*f = Folders{one}
		}
		return nil
	}
	var all []string
	if json.Unmarshal(text, &all) != nil {
		return errFolders
	}
	*f = all
	return nil
}

// shown returns the folders as in a file: none and one as text.
func (f Folders) shown() any {
	switch len(f) {
	case 0:
		return ""
	case 1:
		return f[0]
	}
	return []string(f)
}

func folder(path string) error {
	if path == "" {
		return errors.New("names no folder")
	}
	return nil
}

// folders is paths, which in a file may be relative to it. Its flag may be given several times.
func folders(to *Folders) *field[Folders] {
	f := value(to, nil, nil)
	f.check = func(all Folders, n note) {
		for k, one := range all {
			n(at(k, len(all)), folder(one))
		}
	}
	f.adjust = func(dir string, all Folders) (out Folders) {
		for _, p := range all {
			if !filepath.IsAbs(p) {
				p = filepath.Join(dir, p)
			}
			out = append(out, p)
		}
		return out
	}
	f.read = func(_, text string) (Folders, error) {
		dir, err := filepath.Abs("")
		if text == "" || err != nil {
			return nil, err
		}
		return f.adjust(dir, strings.Split(text, ListSeparator)), nil
	}
	return f
}

// at names the k-th of n values; a single one may stand there without a list.
func at(k, n int) string {
	if n == 1 {
		return ""
	}
	return "[" + strconv.Itoa(k) + "]"
}
