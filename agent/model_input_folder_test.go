package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var inputFiles = []string{"a.yaml", "all.yml", "b.yaml", "z.json"}

// dir is the directory that is the folder, but while it is lost.
func (w *inputWalk) dir() string { return filepath.Join(w.home, fmt.Sprint(w.turns)) }

func (w *inputWalk) path(name string) string { return filepath.Join(w.dir(), name) }

// isLost reports whether something else is where the folder was.
func (w *inputWalk) isLost() bool { return w.at != fmt.Sprint(w.turns) }

// point lets the folder's link lead elsewhere, in one step.
func (w *inputWalk) point(to string) {
	w.at = to
	noErr(w.T, os.Symlink(filepath.Join(w.home, to), w.folder+".new"))
	noErr(w.T, os.Rename(w.folder+".new", w.folder))
}

// put replaces a file as an editor does, or through a link, or in place.
func (w *inputWalk) put(name string, p *paper) {
	path := w.path(name)
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		noErr(w.T, os.RemoveAll(path))
	}
	w.papers[name] = p
	w.hint(name, p)
	switch w.rand.IntN(4) {
	case 0:
		noErr(w.T, os.WriteFile(path, []byte(p.text), 0o600))
	case 1:
		to := filepath.Join(w.home, fmt.Sprint("linked", len(w.trace), name))
		noErr(w.T, os.WriteFile(to, []byte(p.text), 0o600))
		noErr(w.T, os.Symlink(to, path+".new"))
		noErr(w.T, os.Rename(path+".new", path))
	default:
		noErr(w.T, os.WriteFile(path+".new", []byte(p.text), 0o600))
		noErr(w.T, os.Rename(path+".new", path))
	}
}

func (w *inputWalk) writeFile() string {
	name := pick(w.rand, inputFiles...)
	p := newPaper(w.someDocuments())
	w.put(name, p)
	return fmt.Sprintf("%s: %s", name, p)
}

func (w *inputWalk) dropFile() string {
	name := w.somePaper()
	if name == "" {
		return ""
	}
	delete(w.papers, name)
	noErr(w.T, os.RemoveAll(w.path(name)))
	return name + ": remove"
}

// moveDocument moves one between two files, of which the one or the other is written first.
func (w *inputWalk) moveDocument() string {
	from, to := w.somePaper(), w.somePaper()
	if from == to || len(w.papers[from].docs) == 1 || w.papers[from].isBad() || w.papers[to].isBad() {
		return ""
	}
	docs := w.papers[from].docs
	k := w.rand.IntN(len(docs))
	moved := docs[k]
	takes := func() {
		rest := slices.DeleteFunc(slices.Clone(w.papers[to].docs), func(d document) bool { return d.name == moved.name })
		w.put(to, newPaper(append(rest, moved)))
	}
	gives := func() { w.put(from, newPaper(slices.Delete(slices.Clone(docs), k, k+1))) }
	first, then := takes, gives
	isGone := w.rand.IntN(2) == 0
	if isGone {
		first, then = gives, takes
	}
	d := pick(w.rand, 0, 100*time.Millisecond, time.Second)
	first()
	if !isGone || d > 100*time.Millisecond { // less than the settle time proves nothing
		w.observe()
	}
	w.after(d)
	then()
	return fmt.Sprintf("%s moves from %s to %s, gone first %v, in %s", moved.name, from, to, isGone, d)
}

// linkToItself is a trouble of a file.
const linkToItself = "a link to itself"

func (w *inputWalk) renameFile() string {
	from, to := w.somePaper(), pick(w.rand, inputFiles...)
	if from == "" || from == to {
		return ""
	}
	p := w.papers[from]
	noErr(w.T, os.RemoveAll(w.path(to)))
	noErr(w.T, os.Rename(w.path(from), w.path(to)))
	if p.trouble == linkToItself { // its target would be the former name
		noErr(w.T, errors.Join(os.Remove(w.path(to)), os.Symlink(w.path(to), w.path(to))))
	}
	delete(w.papers, from)
	w.papers[to] = p
	w.fell[to] = true
	return fmt.Sprintf("%s is renamed to %s", from, to)
}

// cut is where a text is cut short, within its k-th document.
func (w *inputWalk) cut(p *paper, k int) {
	p.whole = k
	p.print()
	last := p.docs[k].text(false)
	if k > 0 {
		p.text += "---\n"
	}
	p.text += last[:1+w.rand.IntN(len(last)-3)]
}

func (w *inputWalk) cutFile() string {
	name := w.somePaper()
	if name == "" || w.papers[name].isBad() || len(w.papers[name].docs) == 0 {
		return ""
	}
	p := w.spoil(name)
	w.cut(p, w.rand.IntN(len(p.docs)))
	noErr(w.T, os.WriteFile(w.path(name), []byte(p.text), 0o600))
	return fmt.Sprintf("%s is cut: %s", name, p)
}

// writeSlowly is a program that writes a file in two parts, and has it open meanwhile.
func (w *inputWalk) writeSlowly() string {
	name := w.somePaper()
	if name == "" || w.papers[name].trouble != "" {
		return ""
	}
	w.spoil(name)
	whole := newPaper(w.someDocuments())
	part := *newPaper(whole.docs)
	w.cut(&part, w.rand.IntN(len(part.docs)))
	rest, _ := strings.CutPrefix(whole.text, part.text)
	f, err := os.OpenFile(w.path(name), os.O_WRONLY|os.O_TRUNC, 0)
	noErr(w.T, err)
	_, err = f.WriteString(part.text)
	noErr(w.T, err)
	w.papers[name] = &part
	w.note("%s is being written: %s", name, &part)
	w.observe()
	d := pick(w.rand, 0, 20*time.Millisecond, 500*time.Millisecond, 10*time.Second)
	w.after(d)
	w.untouched()
	_, err = f.WriteString(rest)
	noErr(w.T, err)
	noErr(w.T, f.Close())
	w.papers[name] = whole
	return fmt.Sprintf("%s is written in %s: %s", name, d, whole)
}

func (w *inputWalk) misspell() string {
	name := w.somePaper()
	if name == "" || w.papers[name].isBad() {
		return ""
	}
	var pods []string
	for _, d := range w.papers[name].docs {
		if slices.Contains(inputPods, d.name) {
			pods = append(pods, d.name)
		}
	}
	if len(pods) == 0 {
		return ""
	}
	p := w.spoil(name)
	p.misspelt = pick(w.rand, pods...)
	p.print()
	w.put(name, p)
	return fmt.Sprintf("%s: %s", name, p)
}

// isNone are the troubles of what is no file, and was none if nothing came from it.
func isNone(trouble string) bool {
	return trouble == "a directory" || trouble == "a pipe" || trouble == "a file of the kernel"
}

func (w *inputWalk) makeUnreadable() string {
	name := w.somePaper()
	if name == "" {
		return ""
	}
	p, path := w.spoil(name), w.path(name)
	noErr(w.T, os.RemoveAll(path))
	p.trouble = pick(w.rand, "a link to nowhere", "a link to nowhere", linkToItself, linkToItself, "a directory", "a pipe", "a file of the kernel")
	p.text = ""
	switch p.trouble {
	case "a link to nowhere":
		noErr(w.T, os.Symlink("/nowhere", path))
	case linkToItself:
		noErr(w.T, os.Symlink(path, path))
	case "a file of the kernel":
		noErr(w.T, os.Symlink("/proc/version", path))
	case "a directory":
		noErr(w.T, os.Mkdir(path, 0o700))
	case "a pipe":
		noErr(w.T, unix.Mkfifo(path, 0o600))
	}
	return fmt.Sprintf("%s is %s", name, p.trouble)
}

// mendFile makes a file good: what it meant to say, or something else.
func (w *inputWalk) mendFile() string {
	name := w.somePaper()
	if name == "" || !w.papers[name].isBad() {
		return ""
	}
	docs := w.papers[name].docs
	if w.rand.IntN(3) == 0 {
		docs = w.someDocuments()
	}
	p := newPaper(docs)
	w.put(name, p)
	return fmt.Sprintf("%s is mended: %s", name, p)
}

// litter makes files that are no manifests.
func (w *inputWalk) litter() string {
	name := pick(w.rand, ".a.yaml.swp", "a.yaml~", "#b.yaml#", ".all.yml", "b.yaml.bak", "notes.txt")
	text := document{name: pick(w.rand, inputPods...), image: "img:3"}.text(w.rand.IntN(2) == 0)
	noErr(w.T, os.WriteFile(w.path(name), []byte(text), 0o600))
	return name
}

func (w *inputWalk) loseFolder() string {
	if w.isLost() {
		return ""
	}
	to := pick(w.rand, "nothing", "itself", "an empty directory", "a pipe")
	path := filepath.Join(w.home, to)
	_ = os.RemoveAll(path)
	switch to {
	case "itself":
		noErr(w.T, os.Symlink(path, path))
	case "an empty directory":
		noErr(w.T, os.Mkdir(path, 0o700))
	case "a pipe":
		noErr(w.T, unix.Mkfifo(path, 0o600))
	}
	w.point(to)
	return "in place of the folder is " + to
}

func (w *inputWalk) findFolder() string {
	if !w.isLost() {
		return ""
	}
	w.point(fmt.Sprint(w.turns))
	for name := range w.papers { // what was known of them need not be: another folder was read
		w.fell[name] = true
	}
	return "the folder is back"
}

// turnFolder makes another directory the folder, as git-sync does; or one that is filled slowly.
func (w *inputWalk) turnFolder() string {
	before := w.papers
	w.turns++
	w.isNew, w.found, w.papers = true, false, map[string]*paper{}
	noErr(w.T, os.Mkdir(w.dir(), 0o700))
	gap := pick(w.rand, 0, 0, time.Second, 10*time.Second)
	if gap > 0 {
		w.point(fmt.Sprint(w.turns))
		w.after(gap)
	}
	var all []string
	for _, name := range inputFiles {
		p := before[name]
		switch n := w.rand.IntN(8); {
		case p != nil && n > 2 && !p.isBad():
			p = newPaper(p.docs)
		case n > 0:
			continue
		default:
			p = newPaper(w.someDocuments())
		}
		w.put(name, p)
		all = append(all, fmt.Sprint(name, ": ", p))
		w.fell[name] = true
		w.after(gap)
	}
	w.point(fmt.Sprint(w.turns))
	return fmt.Sprintf("another directory is the folder, filled with pauses of %s: %s", gap, strings.Join(all, "; "))
}
