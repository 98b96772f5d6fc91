package wait

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/print"
	"monopod/agent/status"
	"monopod/manifests"
)

// split separates files from pods: a file has a manifest's extension, is a path from the root or
// the working folder, or exists.
func split(names []string) (files, pods []string) {
	for _, name := range names {
		if isFile(name) {
			files = append(files, name)
		} else {
			pods = append(pods, name)
		}
	}
	return files, pods
}

func isFile(name string) bool {
	if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) ||
		filepath.IsAbs(name) || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && strings.Contains(name, "/") && info.Mode().IsRegular()
}

// file is a manifest to wait for: one in the agent's folder, or a copy of one there.
type file struct {
	given string // as named
	path  string // absolute
	from  string // where content was read; "": not yet
	sum   string // SHA-256 of the awaited content, in hex
}

// newFile reads the content at once, before the first request to the agent: later content is not
// meant.
func newFile(name string) *file {
	f := &file{given: name, path: name}
	if abs, err := filepath.Abs(name); err == nil {
		f.path = abs
	}
	_ = f.read(f.path)
	return f
}

func (f *file) read(path string) error {
	sum, err := sumOf(path)
	if err == nil {
		f.from, f.sum = path, sum
	}
	return err
}

func sumOf(path string) (string, error) {
	data, err := manifests.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// isChanged reports whether a file has other content than what the agent read; false if either is
// not known.
func isChanged(read *status.File) bool {
	sum, err := sumOf(read.Path)
	return err == nil && read.SHA256 != "" && sum != read.SHA256
}

// target returns the path by which the agent knows the file: in its folder, linked from there, or
// the one of that name there.
func (f *file) target(m status.Manifests) string {
	base := filepath.Base(f.path)
	for _, dir := range m.Folders() {
		if sameFile(filepath.Dir(f.path), dir) {
			return filepath.Join(dir, base)
		}
	}
	for _, known := range m.Files {
		if sameFile(f.path, known.Path) {
			return known.Path
		}
	}
	if filepath.Base(m.Dir) == base { // one file instead of a folder
		return m.Dir
	}
	return filepath.Join(f.likely(m), base)
}

// likely returns the folder with a file of that name, of several the one that wins.
func (f *file) likely(m status.Manifests) string {
	for _, dir := range slices.Backward(m.Folders()) {
		if _, err := os.Lstat(filepath.Join(dir, filepath.Base(f.path))); err == nil {
			return dir
		}
	}
	return m.Dir
}

// sameFile reports whether two paths lead to the same file or folder.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// judge judges the file by the agent's report.
func (f *file) judge(outcome string, known *client.Known) verdict {
	if known.Manifests.Dir == "" {
		return lacking("the agent has read no manifests yet")
	}
	target := f.target(known.Manifests)
	if outcome == "removed" || outcome == "gone" {
		return judgeRemoved(target, known.Manifests)
	}
	if f.from == "" && f.read(target) != nil {
		return lacking(fmt.Sprintf("%s is neither at %s nor at %s", f.given, f.path, target))
	}
	at := slices.IndexFunc(known.Manifests.Files, func(k status.File) bool { return k.Path == target })
	if at < 0 {
		return lacking("the agent has not read " + target + " yet")
	}
	now := &known.Manifests.Files[at]
	if now.State == "" {
		return verdict{never: errors.New("the agent is of a version that does not say what it has read: " +
			"update it, or wait for the pods")}
	}
	if now.SHA256 != f.sum && now.State != status.Masked {
		return f.otherContent(now)
	}
	return f.judgeContent(outcome, now, known)
}

// lacking is the verdict while one thing is missing.
func lacking(why string) verdict { return verdict{lacks: []string{why}} }

// otherContent is the verdict while the agent has not read the content.
func (f *file) otherContent(now *status.File) verdict {
	if sum, err := sumOf(f.from); err == nil && sum != f.sum {
		return verdict{never: fmt.Errorf("%s was changed after the wait began: wait for what it says now", f.from)}
	}
	if now.SHA256 == "" && now.State == status.Rejected {
		return lacking(fmt.Sprintf("%s: %s", now.Path, problemsOf(now)))
	}
	return lacking(fmt.Sprintf("the agent has read other content of %s, and not yet that of %s", now.Path, f.from))
}

// judgeContent is the verdict on the content, which the agent has read.
func (f *file) judgeContent(outcome string, now *status.File, known *client.Known) verdict {
	var all verdict
	hasFailed := func(v status.Version) bool { return v.Trial == status.TrialFailed }
	failed := slices.IndexFunc(now.Versions, hasFailed)
	if outcome == "updated" && failed >= 0 {
		return gaveWay(now.Versions[failed].Pod, &now.Versions[failed])
	}
	switch now.State {
	case status.Masked:
		return verdict{never: fmt.Errorf("%s is masked by %s", f.given, now.MaskedBy)}
	case status.Rejected, status.Superseded:
		return verdict{never: fmt.Errorf("%s is %s: %s", f.given, now.State, problemsOf(now))}
	case status.Unread:
		return lacking("the agent has not read " + now.Path + " yet")
	}
	if outcome == "accepted" {
		return all
	}
	for k := range now.Versions {
		v := &now.Versions[k]
		one := judgeVersion(outcome, v.Pod, v, podOf(known.Pods, v.Pod), stableOf(known.Manifests))
		all.lacks = append(all.lacks, one.lacks...)
		if all.never == nil {
			all.never = one.never
		}
	}
	return all
}

func podOf(pods []v1.Pod, key string) *v1.Pod {
	for i := range pods {
		if pods[i].Namespace+"/"+pods[i].Name == key {
			return &pods[i]
		}
	}
	return nil
}

// problemsOf returns why a file, or a pod in it, is not accepted.
func problemsOf(f *status.File) string {
	var words []string
	for _, p := range f.Problems {
		if !p.Warning {
			words = append(words, print.ProblemLine(p, ""))
		}
	}
	for _, v := range f.Versions {
		listed := func(p status.Problem) bool { return !p.Warning && (p.Pod == v.Pod || p.Pod == "") }
		if (v.State == status.Rejected || v.State == status.Superseded) && !slices.ContainsFunc(f.Problems, listed) {
			words = append(words, print.OneLine(v.Pod+": "+v.Reason))
		}
	}
	return strings.Join(words, "; ")
}

// judgeRemoved is the verdict on a file that is to be gone with its pods.
func judgeRemoved(target string, m status.Manifests) verdict {
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return lacking(target + " is still there")
	}
	isTarget := func(f status.File) bool { return f.Path == target }
	if slices.ContainsFunc(m.Files, isTarget) {
		return lacking("the agent has not seen yet that " + target + " is gone")
	}
	if k := slices.IndexFunc(m.Leaving, isTarget); k >= 0 {
		if pods := m.Leaving[k].Pods; len(pods) > 0 {
			return lacking("these are being stopped: " + strings.Join(pods, ", "))
		}
		return lacking("it is not certain yet that what " + target + " gave is to go")
	}
	return verdict{}
}
