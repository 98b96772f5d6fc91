package status

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"
)

// someFiles is a report of n files.
func someFiles(n int) Manifests {
	m := Manifests{Dir: `/m/"files": []/<&>`, Problems: []Problem{{File: "/m", Message: `"files": []`}}}
	for k := range n {
		path, at := fmt.Sprintf("/m/%03d.yaml", k), time.Unix(int64(k), 0).UTC()
		pod := fmt.Sprintf("d/p%03d", k)
		m.Files = append(m.Files, File{Path: path, Pods: []string{pod}, State: Accepted, Since: at, SHA256: "ab", MaskedBy: "/n/x.yaml",
			Problems: []Problem{{File: path, Message: "a < b & c"}}, Versions: []Version{{Pod: pod, State: Accepted, Since: at}},
			Objects: []Object{{Kind: "ConfigMap", Name: "d/c", Pods: []string{pod}}}})
	}
	return m
}

func TestAReportByFilesIsTheWholeOne(t *testing.T) {
	var e encodedFiles
	var whole encoder
	m := someFiles(5)
	for _, row := range []struct {
		name   string
		change func()
	}{
		{"the first", func() {}},
		{"the same again", func() {}},
		{"another state of a file", func() { m.Files[2].State = Rejected }},
		{"another state of a version", func() { m.Files[3].Versions = []Version{{Pod: "d/p003", State: Waiting}} }},
		{"a problem of the settings", func() { m.Settings = []Problem{{Message: `"files": []`}} }},
		{"fewer files", func() { m.Files = m.Files[1:2] }},
		{"other files", func() { m = someFiles(9) }},
		{"none", func() { m.Files = []File{} }},
		{"some again", func() { m = someFiles(2) }},
	} {
		row.change()
		want, wrong := whole.encodeAt("", m)
		got, err := e.encode(m)
		if wrong != nil || err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", row.name, err, got, want)
		}
	}
}

// A field that is added is compared, too.
func TestAFileOfWhichAnyFieldDiffersIsEncodedAgain(t *testing.T) {
	was := someFiles(1).Files[0]
	for k := range reflect.TypeFor[File]().NumField() {
		now := someFiles(1).Files[0]
		if !now.same(&was) {
			t.Fatal("the same are told apart")
		}
		reflect.ValueOf(&now).Elem().Field(k).SetZero()
		if reflect.TypeFor[File]().Field(k).Name == "Held" {
			now.Held = true
		}
		if now.same(&was) {
			t.Errorf("without its %s it counts as the same", reflect.TypeFor[File]().Field(k).Name)
		}
	}
}

// What one file's change costs is the same among a thousand files.
func TestAReportCostsWhatHasChanged(t *testing.T) {
	cost := map[int]float64{}
	for _, n := range []int{2, 1000} {
		var e encodedFiles
		m := someFiles(n)
		for k := range m.Files {
			m.Files[k].Objects = nil // which are compared by reflection
		}
		cost[n] = math.Inf(1)
		for range 50 { // the least: the race detector has pools drop what they keep, by chance
			cost[n] = min(cost[n], testing.AllocsPerRun(1, func() {
				m.Files[n/2].Held = !m.Files[n/2].Held
				if _, err := e.encode(m); err != nil {
					t.Fatal(err)
				}
			}))
		}
	}
	if cost[1000] > 1.3*cost[2] {
		t.Errorf("allocations: %v", cost)
	}
}
