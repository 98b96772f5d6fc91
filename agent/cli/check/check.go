package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"monopod/agent/config"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/documents"
)

// Given is what manifests are read with; each may be nil.
type Given struct {
	Fill       *manifests.Fill
	IsAccepted func(*manifests.Pod) bool // whether an agent runs a version, so that it spares it
	Page       *Page                     // what the manifest URL gives, which all else wins over
}

// Page is the answer of a manifest URL.
type Page struct {
	URL  string
	Body []byte
}

// All checks everything that the arguments name; "-" is stdin. given is what manifests are read
// with beside cfg.
func All(ctx context.Context, cfg config.Config, given Given, args []string, stdin io.Reader) (*Result, error) {
	node := cfg.NodeName
	if node == "" {
		node, _ = os.Hostname()
	}
	v := &Result{From: map[string]string{}, at: map[manifests.Key]func(string) manifests.Place{}, given: map[string][]documents.FoundObject{}, ranks: map[string]int{}, named: map[string]bool{}}
	v.options = manifests.Options{
		NodeName: strings.ToLower(node), NameSuffix: cfg.PodNameSuffix, Validation: cfg.Validation, RuntimeClasses: cfg.RuntimeClasses, Fill: given.Fill, IsAccepted: given.IsAccepted}
	for _, arg := range args {
		if err := v.add(ctx, arg, stdin); err != nil {
			return nil, err
		}
	}
	if p := given.Page; p != nil {
		v.inputs = append(v.inputs, input{path: manifests.URLName(p.URL), data: p.Body, rank: rankOfPage, url: p.URL})
	}
	v.mask()
	v.options.Claims = v.claims()
	for _, in := range v.byRank() {
		v.check(in)
	}
	if v.isLayered() {
		v.reorder()
	}
	v.checkPorts()
	return v, nil
}

// Result has the problems of the files that are checked together.
type Result struct {
	options manifests.Options
	inputs  []input
	folders []string        // of the arguments, files among them
	named   map[string]bool // the files of the arguments, from the root
	rank    int             // of the last folder
	Files   []File
	Pods    []*manifests.Pod // that are fit to run
	Objects []*manifests.Object
	From    map[string]string // the file that gives a pod, or an object
	at      map[manifests.Key]func(field string) manifests.Place
	given   map[string][]documents.FoundObject // by file
	ranks   map[string]int                     // as From, of the folders
}

// input is a file that was read.
type input struct {
	path string
	data []byte
	rank int    // of the folder that it is of, from 1; 0: it was given by itself
	url  string // that gives it; "": a file does
}

// rankOfPage is below those of files.
const rankOfPage = -1

// claims are the PersistentVolumeClaims that all files give together.
func (v *Result) claims() map[manifests.Key]bool {
	all := map[manifests.Key]bool{}
	if len(v.inputs) > 1 {
		for _, in := range v.inputs {
			maps.Copy(all, documents.Claims(in.path, in.data, v.options))
		}
	}
	return all
}

// add reads what one argument names; "-" is stdin.
func (v *Result) add(ctx context.Context, arg string, stdin io.Reader) error {
	if arg == "-" {
		return v.stream(ctx, arg, func() ([]byte, error) { return manifests.ReadBounded(stdin) })
	}
	if info, err := os.Stat(arg); err == nil && info.Mode()&fs.ModeNamedPipe != 0 { // such as <(helm template .)
		return v.stream(ctx, arg, func() ([]byte, error) { return readPipe(arg) })
	}
	paths, err := manifests.Paths(arg)
	if err != nil {
		return fmt.Errorf("%s: %w", arg, cmp.Or(errors.Unwrap(err), err))
	}
	isFolder := len(paths) != 1 || paths[0] != arg
	before := len(paths)
	paths = slices.DeleteFunc(paths, v.wasNamed)
	if before > 0 && len(paths) == 0 {
		return nil
	}
	v.folders = append(v.folders, arg)
	rank := 0
	if isFolder {
		v.rank++
		rank = v.rank
	}
	for _, path := range paths {
		if data, err := readOf(path, rank); err != nil {
			v.unread(path, err)
		} else {
			v.inputs = append(v.inputs, input{path: path, data: data, rank: rank})
		}
	}
	return nil
}

// wasNamed reports whether a file was named before, itself or by its folder, and records that it is
// now: it is checked once.
func (v *Result) wasNamed(path string) bool {
	path = absolute(path)
	if v.named[path] {
		return true
	}
	v.named[path] = true
	return false
}

// absolute returns the path from the root, or the path itself if the working folder is unknown.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return filepath.Clean(path)
}

// stream reads standard input or a pipe.
func (v *Result) stream(ctx context.Context, path string, read func() ([]byte, error)) error {
	data, err := unlessDone(ctx, read)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", path, err)
	case err != nil:
		v.unread(path, err)
	default:
		v.inputs = append(v.inputs, input{path: path, data: data})
	}
	return nil
}

// unread reports a file that cannot be read.
func (v *Result) unread(path string, err error) {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	v.Files = append(v.Files, File{Path: path, Problems: []status.Problem{{File: path, Message: err.Error()}}})
}

// check checks one file. Two pods of one name are a problem, even in two files, but not in two
// folders.
func (v *Result) check(in input) {
	path := in.path
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	options := v.options
	options.URL = in.url
	if in.url != "" {
		abs = path
	}
	pods, objects, found := manifests.DecodePlaced(abs, in.data, options)
	f := File{Path: path}
	v.given[path] = objects
	for _, p := range found {
		p.File = path
		f.Problems = append(f.Problems, p)
	}
	for _, o := range objects {
		if v.gaveWay(&f, in.rank, o.String(), o.Line, o.Column) {
			continue
		}
		if first, twice := v.From[o.String()]; twice {
			f.Problems = append(f.Problems, status.Problem{File: path, Line: o.Line, Column: o.Column,
				Message: fmt.Sprintf("%s is in %s already: one of the two must go", o, first)})
			continue
		}
		v.From[o.String()], v.ranks[o.String()] = path, in.rank
		v.Objects, f.Objects = append(v.Objects, o.Object), append(f.Objects, o.String())
	}
	for _, p := range pods {
		key, at := p.Key().String(), p.At("metadata.name")
		if v.gaveWay(&f, in.rank, key, at.Line, at.Column) {
			continue
		}
		if first, twice := v.From[key]; twice {
			f.Problems = append(f.Problems, placed(path, p, "metadata.name",
				fmt.Sprintf("pod %s is in %s already: one of the two must go", key, first)))
			continue
		}
		v.From[key], v.ranks[key] = path, in.rank
		v.Pods, v.at[p.Key()] = append(v.Pods, p.Pod), p.At
		containers := len(slices.Concat(p.Spec.InitContainers, p.Spec.Containers))
		f.Pods = append(f.Pods, Pod{Name: key, Containers: containers})
	}
	v.Files = append(v.Files, f)
}

// readPipe reads a pipe of the file system, for which it waits until a process opens it for writing.
func readPipe(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return manifests.ReadBounded(f)
}

// unlessDone returns what read does, unless ctx ends before.
func unlessDone(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() { // ends with the process if the input has no end
		data, err := read()
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
