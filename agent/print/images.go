package print

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"monopod/agent/status"
)

const noImages = "The runtime has no images."

// Images prints a table of images, and below it how full their disk is, which goes to notes unless
// w is a terminal.
func Images(w, notes io.Writer, all *status.Images, f Format) error {
	var out bytes.Buffer
	words := append(diskWords(all, f.Now), archiveWords(all)...)
	switch {
	case len(all.Images) > 0:
		imageTable(all, f).Print(&out)
	case f.Columns > 0:
		fmt.Fprintln(&out, noImages)
	default:
		words = append([]string{noImages}, words...)
	}
	return f.write(w, notes, &out, words)
}

// imageTable lays the images out, those with names first.
func imageTable(all *status.Images, f Format) *Table {
	wide := f.Output == "wide"
	t := &Table{columns: f.Columns}
	head := []string{"IMAGE", "ID", "SIZE", "USED BY", "COLLECTED"}
	if wide {
		head = slices.Insert(head, 4, "FIRST SEEN", "LAST USED")
	}
	t.Line(head...)
	images := slices.Clone(all.Images)
	slices.SortStableFunc(images, func(a, b status.Image) int { return strings.Compare(sortName(a), sortName(b)) })
	for _, i := range images {
		row := []string{imageName(i, wide), shortID(i.ID), size(i.Size), users(i, all.Node, wide), collected(i)}
		if wide {
			row = slices.Insert(row, 4, ago(i.FirstSeen, f.Now), ago(i.LastUsed, f.Now))
		}
		t.Line(row...)
	}
	return t
}

func sortName(i status.Image) string {
	if len(i.Names) > 0 {
		return i.Names[0]
	}
	return "~" + strings.Join(i.Digests, "") + i.ID // behind all names
}

func imageName(i status.Image, wide bool) string {
	names := i.Names
	switch {
	case wide:
		names = slices.Concat(i.Names, i.Digests)
	case len(names) == 0 && len(i.Digests) > 0:
		repository, digest, _ := strings.Cut(i.Digests[0], "@")
		return repository + "@" + shortID(digest)
	case len(names) > 1:
		return fmt.Sprintf("%s (+%d)", names[0], len(names)-1)
	}
	return strings.Join(names, ",")
}

// shortID returns enough of an id to distinguish it from others, as docker and crictl print it.
func shortID(id string) string {
	_, hex, found := strings.Cut(id, ":")
	if !found {
		hex = id
	}
	return hex[:min(len(hex), 12)]
}

// usersShown is how many users of an image fit into a line.
const usersShown = 3

// users names the pods as their manifests do.
func users(i status.Image, node string, wide bool) string {
	var names []string
	for _, u := range i.Users {
		names = append(names, short(u, node))
	}
	if more := len(names) - usersShown; more > 0 && !wide {
		return fmt.Sprintf("%s (+%d)", strings.Join(names[:usersShown], ","), more)
	}
	return strings.Join(names, ",")
}

func collected(i status.Image) string {
	switch {
	case i.Collect:
		return "next: " + i.Why
	case len(i.Users) > 0:
		return "no"
	}
	return "no: " + i.Why
}

func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Ago(t, now)
}

// archiveWords returns what becomes of the archives that give images.
func archiveWords(all *status.Images) (words []string) {
	for _, a := range all.Archives {
		line := fmt.Sprintf("archive %s: %s", a.Path, a.State)
		if a.Why != "" {
			line += ": " + a.Why
		}
		words = append(words, OneLine(line))
	}
	return words
}

// diskWords returns how full the disk is, and what that means.
func diskWords(all *status.Images, now time.Time) []string {
	var words []string
	if d := all.Disk; d == nil {
		words = append(words, "how full the disk of the images is, is not known")
	} else {
		line := fmt.Sprintf("%s: %d %% of %s used", d.Dir, d.UsedPercent, size(d.Capacity))
		if d.High < 100 {
			line += fmt.Sprintf("; unused images go from %d %% on, until %d %%", d.High, d.Low)
		}
		words = append(words, OneLine(line))
	}
	if all.Missing > 0 {
		words = append(words, fmt.Sprintf("for %s nothing is left that could go, and %s are missing",
			Ago(all.MissingSince, now), size(all.Missing)))
	}
	return words
}
