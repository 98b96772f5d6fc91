package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"monopod/manifests/documents"
)

// A safety net with a slip of the pen is an error, not none; where the slip is in monopod's
// own name, it may be another program's, and is a warning.
func TestAnAnnotationThatMonopodDoesNotKnowIsRefused(t *testing.T) {
	const at = "metadata.annotations["
	for _, row := range []struct{ annotation, want string }{
		{"monopod.update-health: 30s", ""},
		{"example.com/x: v", ""}, {"mongodb.com/v: v", ""}, {"monitor: v", ""},
		{"monopod.update-helth: 30s", at + `monopod.update-helth]: unknown annotation "monopod.update-helth": did you mean "monopod.update-health"?`},
		{"Monopod.update: prepare", at + `Monopod.update]: unknown annotation "Monopod.update": did you mean "monopod.update"?`},
		{"MONOPOD/x: v", at + "MONOPOD/x]: unknown annotation \"MONOPOD/x\"; `monopod man` lists them"},
		{"monpod.start-after: db", "~" + at + `monpod.start-after]: unknown annotation "monpod.start-after": did you mean "monopod.start-after"?`},
		{"Monopd.update: prepare", "~" + at + `Monopd.update]: unknown annotation "Monopd.update": did you mean "monopod.update"?`},
		{"monpod.updat: prepare", ""}, {"monpod.held: x", ""}, {"monpod/update: x", ""},
		{"monopod/update: prepare", at + `monopod/update]: unknown annotation "monopod/update": did you mean "monopod.update"?`},
		{"monopod.something-else: x", at + "monopod.something-else]: unknown annotation \"monopod.something-else\"; `monopod man` lists them"},
		{"monopod.restart-on-config-change: 'true'", ""}, {"monopod.restart-on-config-change: 'false'", ""},
		{"monopod.on-config-change: 'signal:HUP'", ""}, {"monopod.on-config-change/c: 'exec:[\"sh\", \"-c\", \"true\"]'", ""},
		{"monopod.on-config-change: 'signal:HUB'", at + `monopod.on-config-change]: Invalid value: "signal:HUB": must be a signal that Linux has, such as signal:HUP or signal:USR1`},
		{"monopod.on-config-change/d: restart", at + `monopod.on-config-change/d]: Invalid value: "d": must be the name of a container that runs as long as the pod: one of spec.containers, or an init container with restartPolicy Always`},
		{"monopod.on-config-change: restart, monopod.restart-on-config-change: 'true'", at + `monopod.on-config-change]: Forbidden: may not be set beside monopod.restart-on-config-change, which is its short form: leave one of them out`},
		{"monopod.on-config-changes: restart", at + `monopod.on-config-changes]: unknown annotation "monopod.on-config-changes": did you mean "monopod.on-config-change"?`},
		{"monopod.restart-on-config-change: 'yes'", at + `monopod.restart-on-config-change]: Invalid value: "yes": must be true or false`},
		{"monopod.held: by me", "~" + at + "monopod.held]: has no effect in a manifest: monopod itself sets it on served objects"},
		{"monopod.serial: '7'", "~" + at + "monopod.serial]: has no effect on a pod: it belongs to the List that a manifest URL gives"},
		{"monopod.follow-images: 1h", ""}, {"monopod.follow-images: 0s", ""},
		{"monopod.follow-images: 1m", at + `monopod.follow-images]: Invalid value: "1m": must be a duration from 10m to 720h, such as 1h, or 0s for never`},
		{"monopod.tag-images: '{}'", "~" + at + "monopod.tag-images]: has no effect in a manifest: monopod itself sets it on served objects"},
		{"monopod.revision: '1'", "~" + at + "monopod.revision]: has no effect in a manifest: monopod itself sets it on the runtime"},
	} {
		_, problems := documents.Decode("/m/x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {"+row.annotation+"}}\nspec: {containers: [{name: c, image: i}]}\n"), node1)
		checkProblems(t, problems, row.want)
	}
}

func TestTheAnnotationOfAJobsPodIsChecked(t *testing.T) {
	const wrong = `metadata.annotations[monopod.job]: Invalid value: "VALUE": must be Never or OnFailure, a slash and a number, such as Never/6, on a pod with restartPolicy OnFailure`
	for _, row := range []struct {
		value, policy string
		isWrong       bool
	}{
		{"Never/6", "OnFailure", false}, {"OnFailure/0", "OnFailure", false},
		{"Never/6", "Never", true}, {"Never/-1", "OnFailure", true}, {"Always/6", "OnFailure", true}, {"6", "OnFailure", true}, {"Never/9999999999", "OnFailure", true},
	} {
		want := ""
		if row.isWrong {
			want = strings.Replace(wrong, "VALUE", row.value, 1)
		}
		_, problems := documents.Decode("/m/x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {monopod.job: '"+row.value+"'}}\nspec: {restartPolicy: "+row.policy+", containers: [{name: c, image: i}]}\n"), node1)
		checkProblems(t, problems, want)
	}
}

// Nothing is said of other programs' annotations, however much their names look like monopod's.
func TestAnnotationsOfOtherProgramsAreTheirs(t *testing.T) {
	for _, name := range []string{
		"mongod.example.com/backup", "mongod/role", "mongod.update/x", "monoprod.com/team", "monolog.io/level", "monopods.example.com/x",
		"monood/x", "mono.com/x", "nomad.io/x", "canopod.io/x", "monopod-exporter.io/update",
	} {
		annotations := "annotations: {" + name + ": x}"
		_, problems := documents.Decode("/m/x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, "+annotations+"}\nspec: {containers: [{name: c, image: i}]}\n"), node1)
		checkProblems(t, problems, "")
		_, problems = documents.Decode("/m/x.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, "+annotations+"}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}\n"), node1)
		checkProblems(t, problems, "")
	}
}

// Where an annotation of monopod's has no effect, that is said.
func TestAnAnnotationAtAnotherPlaceIsAWarning(t *testing.T) {
	_, problems := documents.Decode("/m/x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {monopod.update: prepare}}\nspec: {containers: [{name: c, image: i}]}\n"), node1)
	checkProblems(t, problems, "~metadata.labels[monopod.update]: has no effect as a label: write it below annotations")
	_, problems = documents.Decode("/m/x.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, annotations: {monopod.update-health: 30s}}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}\n"), node1)
	checkProblems(t, problems, "~metadata.annotations[monopod.update-health]: has no effect here: write it below spec.template.metadata.annotations")
}

// TestOrderAnnotations: each row is the text of the annotations; want is as in
// TestValidate.
func TestOrderAnnotations(t *testing.T) {
	const after, timeout = "metadata.annotations[monopod.start-after]: ", "metadata.annotations[monopod.start-after-timeout]: "
	tests := []struct{ name, annotations, want string }{
		{"a pod of the same namespace", "monopod.start-after: db", ""},
		{"pods of several", "monopod.start-after: 'db, x/cache ,y/z.w'", ""},
		{"one that is named often", "monopod.start-after: 'db, a, db, db, db'", after + `Duplicate value: "default/db"`},
		{"no names at all", "monopod.start-after: ',,,'", after + `Invalid value: ",,,": must be names of pods`},
		{"a time limit", "monopod.start-after: db, monopod.start-after-timeout: 1m30s", ""},
		{"no name", "monopod.start-after: ''", after + `Invalid value: "": must be names of pods`},
		{"a name too few", "monopod.start-after: 'db,'", after + `Invalid value: "db,": must be names of pods`},
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
			_, problems := documents.Decode("/m/x.yaml", []byte(file), node1)
			checkProblems(t, problems, tt.want)
		})
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
		_, problems := documents.Decode("/m/x.yaml", []byte(file), node1)
		checkProblems(t, problems, want)
	}
}

func TestBackOffAnnotations(t *testing.T) {
	const first, most = "metadata.annotations[monopod.backoff-first]", "metadata.annotations[monopod.backoff-max]"
	bad := ": must be a duration from 100ms to 24h, such as 10s or 5m"
	for _, row := range []struct{ name, annotations, want string }{
		{"none", "{a: b}", ""},
		{"both", "{monopod.backoff-first: 500ms, monopod.backoff-max: 1m}", ""},
		{"the same", "{monopod.backoff-first: 10s, monopod.backoff-max: 10s}", ""},
		{"the first alone, longer than any node's", "{monopod.backoff-first: 1h}", ""},
		{"the longest alone, shorter than any node's", "{monopod.backoff-max: 1s}", ""},
		{"no unit", "{monopod.backoff-first: '10'}", `4:41 ` + first + `: Invalid value: "10"` + bad},
		{"empty", "{monopod.backoff-max: ''}", `4:18 ` + most + `: Invalid value: ""` + bad},
		{"nothing at all", "{monopod.backoff-first: 0s}", `4:41 ` + first + `: Invalid value: "0s"` + bad},
		{"too short", "{monopod.backoff-first: 99ms}", `4:41 ` + first + `: Invalid value: "99ms"` + bad},
		{"negative", "{monopod.backoff-max: -1m}", `4:39 ` + most + `: Invalid value: "-1m"` + bad},
		{"too long", "{monopod.backoff-max: 25h}", `4:39 ` + most + `: Invalid value: "25h"` + bad},
		{"the wrong way round", "{monopod.backoff-first: 2m, monopod.backoff-max: 1m}", `4:41 ` + first + `: Invalid value: "2m": must not be longer than monopod.backoff-max`},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:  " + row.annotations + "\n  name: a\nspec: {containers: [{name: c, image: i}]}\n"
			_, problems := documents.Decode("/m/x.yaml", []byte(text), node1)
			if got := words(problems); got != row.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, row.want)
			}
		})
	}
}

func TestTheUpdateAnnotation(t *testing.T) {
	for _, row := range []struct{ name, annotations, want string }{
		{"none", "{a: b}", ""},
		{"stop first", "{monopod.update: stop-first}", ""},
		{"prepare", "{monopod.update: prepare}", ""},
		{"another", "{monopod.update: later}", `4:34 metadata.annotations[monopod.update]: Unsupported value: "later": supported values: "prepare", "stop-first", "in-place", "replace"`},
		{"replace", "{monopod.update: replace}", ""},
		{"in place", "{monopod.update: in-place}", ""},
		{"the settings' word for replace", "{monopod.update: Replace}", ""},
		{"the settings' word for in place", "{monopod.update: InPlace}", ""},
		{"neither word", "{monopod.update: REPLACE}", `4:34 metadata.annotations[monopod.update]: Unsupported value: "REPLACE": supported values: "prepare", "stop-first", "in-place", "replace"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:  " + row.annotations + "\n  name: a\nspec: {containers: [{name: c, image: i}]}\n"
			_, problems := documents.Decode("/m/x.yaml", []byte(text), node1)
			if got := words(problems); got != row.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, row.want)
			}
		})
	}
}

func TestPodsThatCannotFollowATagAreTold(t *testing.T) {
	const at = "~metadata.annotations[monopod.follow-images]: has no effect"
	for spec, want := range map[string]string{
		"containers: [{name: c, image: i}]":                                          "",
		"restartPolicy: Never, containers: [{name: c, image: i}]":                    at + " on a pod that runs to completion: its restartPolicy is Never",
		"restartPolicy: OnFailure, containers: [{name: c, image: i}]":                at + " on a pod that runs to completion: its restartPolicy is OnFailure",
		"containers: [{name: c, image: 'i@sha256:" + strings.Repeat("1", 64) + "'}]": at + ": all images of the pod are given by digest, which never move",
	} {
		_, problems := documents.Decode("/m/x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {monopod.follow-images: 1h}}\nspec: {"+spec+"}\n"), node1)
		checkProblems(t, problems, want)
	}
}

// An init container that restarts on failure runs to its end: nothing is ever told to it.
func TestNothingIsToldToAnInitContainerThatRestartsOnFailure(t *testing.T) {
	for _, policy := range []string{"OnFailure", "Never"} {
		_, problems := documents.Decode("/m/x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {monopod.on-config-change/i: 'signal:HUP'}}\n"+
			"spec: {initContainers: [{name: i, image: i, restartPolicy: "+policy+"}], containers: [{name: c, image: i}]}\n"), node1)
		checkProblems(t, problems, `metadata.annotations[monopod.on-config-change/i]: Invalid value: "i": must be the name of a container that runs as long as the pod: one of spec.containers, or an init container with restartPolicy Always`)
	}
}
