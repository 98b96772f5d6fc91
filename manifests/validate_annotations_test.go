package manifests

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/manifests/decode"
)

// TestOrderAnnotations: each row is the text of the annotations; want is as in
// TestValidate.
func TestOrderAnnotations(t *testing.T) {
	const after, timeout = "metadata.annotations[monopod.start-after]: ", "metadata.annotations[monopod.start-after-timeout]: "
	tests := []struct{ name, annotations, want string }{
		{"a pod of the same namespace", "monopod.start-after: db", ""},
		{"pods of several", "monopod.start-after: 'db, x/cache ,y/z.w'", ""},
		{"a time limit", "monopod.start-after: db, monopod.start-after-timeout: 1m30s", ""},
		{"no name", "monopod.start-after: ''", after + `Invalid value: "": must name pods`},
		{"a name too few", "monopod.start-after: 'db,'", after + `Invalid value: "db,": must name pods`},
		{"a name that no pod can have", "monopod.start-after: 'db, D_B'", after + `Invalid value: "D_B": a lowercase RFC 1123 subdomain`},
		{"a namespace that cannot be", "monopod.start-after: X/db", after + `Invalid value: "X/db": a lowercase RFC 1123 label`},
		{"a name missing behind a namespace", "monopod.start-after: x/", after + `Invalid value: "x/": a lowercase RFC 1123 subdomain`},
		{"two slashes", "monopod.start-after: x/y/z", after + `Invalid value: "x/y/z": a lowercase RFC 1123 subdomain`},
		{"a name twice", "monopod.start-after: 'db, default/db'", after + `Duplicate value: "default/db"`},
		{"a limit without a unit", "monopod.start-after: db, monopod.start-after-timeout: '90'", timeout + `Invalid value: "90": must be a time above 0 with its unit`},
		{"a limit of nothing", "monopod.start-after: db, monopod.start-after-timeout: 0s", timeout + `Invalid value: "0s"`},
		{"a limit alone", "monopod.start-after-timeout: 9s", "~" + timeout + "has no effect without monopod.start-after"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {" + tt.annotations + "}}\nspec: {containers: [{name: c, image: i}]}\n"
			_, problems := Decode("/m/x.yaml", []byte(file), node1)
			checkProblems(t, problems, tt.want)
		})
	}
}

func TestOrderOf(t *testing.T) {
	p := accepted(t, node1, "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: prod, annotations: {monopod.start-after: 'db, x/cache', monopod.start-after-timeout: 1m30s}}\nspec: {containers: [{name: c, image: i}]}\n")
	o := decode.OrderOf(p.Pod)
	if got := fmt.Sprint(o.After); got != "[prod/db x/cache]" || o.Timeout != 90*time.Second {
		t.Errorf("order %+v", o)
	}
	if o := decode.OrderOf(accepted(t, node1, podYAML("a")).Pod); len(o.After) > 0 {
		t.Errorf("order %+v", o)
	}
}

func TestASnapshotSaysWhereOrdersStand(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.write("a.yaml", strings.Replace(podYAML("a"), "spec:", "  annotations:\n    monopod.start-after: db\nspec:", 1))
	s := f.until("a@a.yaml=busybox")
	if got := s.Files[0].Orders["default/a-node1"]; got != (decode.Position{Line: 6, Column: 26}) {
		t.Errorf("%s: %+v", filepath.Base(s.Files[0].Path), s.Files[0].Orders)
	}
}

func TestTheTimeForAnUpdateIsChecked(t *testing.T) {
	const at = "metadata.annotations[monopod.update-health]: "
	for text, want := range map[string]string{
		"30s": "", "0s": "", "24h": "",
		"30": at + `Invalid value: "30": must be a duration from 1s to 24h`, "999ms": at + `Invalid value: "999ms"`,
		"25h": at + `Invalid value: "25h"`, "-1s": at + `Invalid value: "-1s"`, "": at + `Invalid value: ""`,
	} {
		file := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {monopod.update-health: %q}}\nspec: {containers: [{name: c, image: i}]}\n", text)
		_, problems := Decode("/m/x.yaml", []byte(file), node1)
		checkProblems(t, problems, want)
	}
}
