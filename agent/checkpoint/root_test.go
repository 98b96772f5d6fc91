package checkpoint

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// The pods of an agent that did not end by itself are in doubt.
func TestAnAgentThatDidNotEndByItselfLeavesADoubt(t *testing.T) {
	for _, row := range []struct {
		name        string
		clean       bool
		known       int
		doubt, said bool
	}{
		{"it ended by itself", true, 3, false, false},
		{"it did not", false, 3, true, true},
		{"it did not, and had no pods", false, 0, true, false},
	} {
		r := openTestRoot(t, t.TempDir())
		if row.clean {
			r.EndedCleanly()
		}
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		if doubt := r.InDoubt(row.known, log); doubt != row.doubt || (said.Len() > 0) != row.said {
			t.Errorf("%s: %v, said %s", row.name, doubt, &said)
		}
		if !r.InDoubt(row.known, log) {
			t.Errorf("%s: that counts for the agent after the next one, too", row.name)
		}
	}
}

func TestARootDirThatTakesNoDataIsTold(t *testing.T) {
	const text = "root dir cannot be written: known pods run on, new pods wait; free space on its disk, or mount it for writing"
	for _, row := range []struct {
		trouble error
		want    string
	}{
		{nil, ""},
		{errors.New("no space left"), "RootDirNotWritable: " + text + ": no space left"},
	} {
		r := &Root{Dir: t.TempDir(), Trouble: row.trouble}
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		got := ""
		r.Complain(log, func(reason, message string) { got = reason + ": " + message })
		if got != row.want || (said.Len() > 0) != (row.want != "") {
			t.Errorf("%v: event %q, said %s", row.trouble, got, &said)
		}
		said.Reset()
		r.Complain(log, nil)
		if strings.Contains(said.String(), "no space left") != (row.want != "") {
			t.Errorf("%v, without events: said %s", row.trouble, &said)
		}
	}
}
