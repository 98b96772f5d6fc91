package print

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// RuntimeWords returns that the runtime is down, if it is.
func RuntimeWords(r status.Runtime, now time.Time) []string {
	if r.Up {
		return nil
	}
	subject := "the runtime"
	if r.Endpoint != "" {
		subject += " at " + r.Endpoint
	}
	line := subject + " has not answered yet"
	if KnownTime(r.Since, now) {
		line = subject + " has not answered for " + Ago(r.Since, now)
	}
	if r.Error != "" {
		line += ": " + r.Error
	}
	return []string{OneLine(line)}
}

// ManifestWords returns the problems of the settings and the folder, then those of each file, with
// notes each of its notes.
func ManifestWords(m status.Manifests, notes bool) []string {
	var words []string
	for _, p := range slices.Concat(m.Reports, m.Settings) {
		words = append(words, ProblemLine(p, ""))
	}
	for _, p := range m.Problems {
		words = append(words, ProblemLine(p, m.Base()))
	}
	for _, f := range m.Files {
		words = append(words, FileWords(f, m.Base(), notes)...)
	}
	return words
}

// Gives reports whether the pod is from that file.
func Gives(f status.File, p *v1.Pod) bool {
	return slices.Contains(f.Pods, p.Namespace+"/"+p.Name) || slices.Contains(f.Pods, p.Namespace+"/"+ShortName(p))
}

// FileWords returns the problems of a file; after the last one that caused a refusal follows what
// runs instead. Without notes several notes are one line.
func FileWords(f status.File, dir string, notes bool) []string {
	var words []string
	refusal, noted := -1, countNotes(f)
	if notes || noted == 1 {
		noted = 0
	}
	for _, p := range f.Problems {
		if p.Waits || p.Note && noted > 0 {
			continue // the pod reports it, or the line below
		}
		words = append(words, ProblemLine(p, dir))
		if !p.Warning {
			refusal = len(words) - 1
		}
	}
	if noted > 0 {
		words = append(words, OneLine(fmt.Sprintf("%s: %d notes: monopod ps --files -o wide", within(dir, f.Path), noted)))
	}
	if !f.Held {
		return words
	}
	held := "the last good version runs on"
	if len(f.Pods) > 0 {
		held = fmt.Sprintf("the last good version of %s runs on", strings.Join(f.Pods, ", "))
	}
	switch {
	case refusal < 0 && slices.ContainsFunc(f.Problems, func(p status.Problem) bool { return p.Waits }):
		return words // the pod reports why, and so that another version runs
	case refusal < 0:
		return append(words, within(dir, f.Path)+": "+held)
	}
	words[refusal] += " (" + held + ")"
	return words
}

// countNotes returns how many problems of a file are about what stays as it is.
func countNotes(f status.File) (n int) {
	for _, p := range f.Problems {
		if p.Note {
			n++
		}
	}
	return n
}

// ProblemLine returns "file:line:column: field: message" with the file relative to dir.
func ProblemLine(p status.Problem, dir string) string {
	if p.File != "" && p.File != dir {
		p.File = within(dir, p.File)
	}
	word := "warning: "
	if p.Note {
		word = "note: "
	}
	if p.Warning && p.Field != "" {
		p.Field = word + p.Field
	} else if p.Warning {
		p.Message = word + p.Message
	}
	return OneLine(p.Error())
}

func EndedWith(t *v1.ContainerStateTerminated) string {
	if t.Reason == "OOMKilled" {
		return fmt.Sprintf("exit code %d, out of memory", t.ExitCode)
	}
	return fmt.Sprintf("exit code %d", t.ExitCode)
}

// JoinWords joins the non-empty parts by colons.
func JoinWords(parts ...string) string {
	var texts []string
	for _, p := range parts {
		if p != "" {
			texts = append(texts, p)
		}
	}
	return strings.Join(texts, ": ")
}
