package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/command"
	"monopod/agent/message"
	"monopod/agent/print"
)

// VersionInfo is what this binary was built from.
type VersionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // 12 digits, "-dirty" if files were changed
	Date     string `json:"date,omitempty"`   // of the commit, RFC 3339: the same sources give the same binary
	Go       string `json:"goVersion"`
	Platform string `json:"platform"` // such as linux/amd64
}

// release is the version that the build was given, by the linker; "": none.
var release string

// Version returns that of the running binary.
func Version() VersionInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	v := versionOf(info, runtime.GOOS+"/"+runtime.GOARCH)
	v.Version = cmp.Or(release, v.Version)
	return v
}

func versionOf(info *debug.BuildInfo, platform string) VersionInfo {
	v := VersionInfo{Version: cmp.Or(strings.Trim(info.Main.Version, "()"), "unknown"), Go: info.GoVersion, Platform: platform}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && v.Commit != "" {
		v.Commit += "-dirty"
	}
	return v
}

// String returns such as "monopod v1.2.3 (0123456789ab of 2026-11-22 12:14:53 UTC, go1.26.0,
// linux/amd64)".
func (v VersionInfo) String() string {
	parts := []string{v.Go, v.Platform}
	if v.Commit != "" {
		commit := v.Commit
		if v.Date != "" {
			commit += " of " + dateText(v.Date)
		}
		parts = append([]string{commit}, parts...)
	}
	return fmt.Sprintf("monopod %s (%s)", v.Version, strings.Join(parts, ", "))
}

// dateText returns a date for people; other text stays as it is.
func dateText(date string) string {
	t, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return date
	}
	return string(message.Time(t))
}

// PrintVersion prints v as a line, or as json or yaml.
func PrintVersion(w io.Writer, output string, v VersionInfo) error {
	if output != "" {
		return print.As(w, output, v)
	}
	_, err := fmt.Fprintln(w, v)
	return err
}

func versionCommand() *cli.Command {
	var output string
	return &cli.Command{
		Name: "version", Usage: "print the version",
		Flags: []cli.Flag{command.OutputFlag(&output, "json", "yaml")},
		Action: func(c *cli.Context) error {
			return PrintVersion(c.App.Writer, output, Version())
		},
	}
}
