package once

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"monopod/manifests/decode"
)

// Pipeline writes the marks by which a CI service folds a log and shows errors beside the files.
// The zero value writes none.
type Pipeline struct {
	out  io.Writer
	kind string // "github", "gitlab" or ""
}

// PipelineOf returns the pipeline of the environment: GITHUB_ACTIONS and GITLAB_CI are "true" in
// jobs of GitHub and GitLab (docs.github.com, "Workflow commands"; docs.gitlab.com, "Custom
// collapsible sections").
func PipelineOf(getenv func(string) string, out io.Writer) Pipeline {
	switch {
	case getenv("GITHUB_ACTIONS") == "true":
		return Pipeline{out, "github"}
	case getenv("GITLAB_CI") == "true":
		return Pipeline{out, "gitlab"}
	}
	return Pipeline{}
}

// sectionName is the section of what containers write.
const sectionName = "monopod_once"

// begin starts the section of what containers write.
func (p Pipeline) begin(now time.Time) {
	switch p.kind {
	case "github":
		fmt.Fprintln(p.out, "::group::monopod once: output of the containers")
	case "gitlab":
		fmt.Fprintf(p.out, "\x1b[0Ksection_start:%d:%s\r\x1b[0Kmonopod once: output of the containers\n", now.Unix(), sectionName)
	}
}

func (p Pipeline) end(now time.Time) {
	switch p.kind {
	case "github":
		fmt.Fprintln(p.out, "::endgroup::")
	case "gitlab":
		fmt.Fprintf(p.out, "\x1b[0Ksection_end:%d:%s\r\x1b[0K\n", now.Unix(), sectionName)
	}
}

// failed marks the run as failed.
func (p Pipeline) failed(text string) {
	if p.kind == "github" {
		fmt.Fprintf(p.out, "::error title=monopod once::%s\n", escapeData(text))
	}
}

// Problem marks a problem of a manifest at its place.
func (p Pipeline) Problem(m decode.Problem) {
	if p.kind != "github" {
		return
	}
	level := "error"
	if m.Warning {
		level = "warning"
	}
	at := "file=" + escapeProperty(m.File)
	if m.Line > 0 {
		at += fmt.Sprintf(",line=%d,col=%d", m.Line, cmp.Or(m.Column, 1))
	}
	m.File, m.Line, m.Column, m.Warning = "", 0, 0, false
	fmt.Fprintf(p.out, "::%s %s::%s\n", level, at, escapeData(m.Error()))
}

// escapeData makes a text fit for a workflow command.
func escapeData(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

// escapeProperty makes a text fit for a property of a workflow command.
func escapeProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeData(text))
}
