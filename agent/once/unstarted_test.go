package once

import (
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// Who reads the report alone must see that nothing has passed.
func TestARunThatDoesNotBeginIsReported(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	for _, row := range []struct {
		name    string
		signals chan os.Signal
		code    int
		says    string
	}{
		{"for lack of a runtime", nil, 125, "no runtime"},
		{"for a signal", signals, 143, "interrupted by SIGTERM before the pods were started"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := Config{Pods: []*v1.Pod{made("job", "Never", "c")}, Signals: row.signals}
			paths := map[string]string{}
			for _, format := range []string{"junit", "json"} {
				paths[format] = filepath.Join(t.TempDir(), "report")
				r, err := ParseReport(format + "=" + paths[format])
				if err != nil {
					t.Fatal(err)
				}
				c.Reports = append(c.Reports, r)
			}
			code, err := Unstarted(c, 125, errors.New("no runtime"))
			if code != row.code || err.Error() != row.says {
				t.Errorf("code %d: %v", code, err)
			}
			for format, part := range map[string]string{"junit": `<error message="` + row.says + `"`, "json": `"message": "` + row.says + `"`} {
				text, err := os.ReadFile(paths[format])
				if err != nil || !strings.Contains(string(text), part) {
					t.Errorf("%s, %v: %s", format, err, text)
				}
			}
		})
	}
}

// A CI service shows testcases, and of a run that is refused there are no containers to show.
func TestARefusedRunHasOneTestcase(t *testing.T) {
	c := Config{Problems: []string{"a.yaml:3: spec.x: unknown", "b.yaml: ]]>"}}
	s := summaryOf(unstarted(c, &outcome{End: endError, Code: 2, Text: "the manifests are invalid"}))
	for _, row := range []struct {
		print func(*Summary) ([]byte, error)
		parts []string
	}{
		{junit, []string{`<testsuites name="monopod once" tests="1" failures="0" errors="1" skipped="0"`, `<testcase name="start" classname="monopod once"`,
			`<error message="the manifests are invalid" type="error"><![CDATA[a.yaml:3: spec.x: unknown` + "\nb.yaml: "}},
		{printJSON, []string{`"problems": [`, `"a.yaml:3: spec.x: unknown",`}},
	} {
		text, err := row.print(s)
		if err != nil || xml.Unmarshal(text, new(junitReport)) != nil && text[0] == '<' {
			t.Errorf("%v: %s", err, text)
		}
		for _, part := range row.parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("no %s in %s", part, text)
			}
		}
	}
}
