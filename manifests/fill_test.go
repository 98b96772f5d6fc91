package manifests

import (
	"slices"
	"strings"
	"testing"
)

const open1 = `apiVersion: v1
kind: Pod
metadata: {name: "job-$(ID)", labels: {build: "$(ID)"}}
spec:
  containers:
  - name: c
    image: r/x:$(TAG)
    command: [sh, -c, "echo $(ID) $$(ID) $(HOME) ${ID}"]
    env: [{name: A, value: "$(ID)$(TAG)"}]
    resources: {limits: {cpu: 1}}
  - name: d
    image: r/y:1
`

func TestManifestsAreFilledIn(t *testing.T) {
	id, tag := "7", "v2"
	o := node1
	o.Fill = &Fill{Values: map[string]*string{"ID": &id, "TAG": &tag, "OTHER": nil}, Images: map[string]string{"d": "r/z:3", "none": "x"}}
	pods, problems := Decode("a.yaml", []byte(open1), o)
	if len(pods) != 1 || len(problems) > 0 {
		t.Fatalf("%d pods, %v", len(pods), problems)
	}
	p := pods[0]
	c := p.Spec.Containers[0]
	got := strings.Join([]string{p.Name, p.Labels["build"], c.Image, c.Command[2], c.Env[0].Value, p.Spec.Containers[1].Image}, "|")
	if want := "job-7-node1|7|r/x:v2|echo 7 $$(ID) $(HOME) ${ID}|7v2|r/z:3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := o.Fill.Unused(); !slices.Equal(got, []string{"none"}) {
		t.Errorf("unused are %q", got)
	}
	if pods, _ := Decode("a.yaml", []byte(strings.ReplaceAll(open1, `{name: "job-$(ID)", labels: {build: "$(ID)"}}`, "{name: job}")), node1); len(pods) != 1 || pods[0].Spec.Containers[0].Env[0].Value != "$(ID)$(TAG)" {
		t.Error("something is filled in unasked")
	}
}

func TestAValueThatIsNotSetIsAProblemAtItsPlace(t *testing.T) {
	id := "7"
	o := node1
	o.Fill = &Fill{Values: map[string]*string{"ID": &id, "TAG": nil}}
	pods, problems := Decode("/m/a.yaml", []byte(open1), o)
	var got []string
	for _, p := range problems {
		got = append(got, p.Error())
	}
	want := []string{"/m/a.yaml:7:12: spec.containers[0].image: $(TAG) has no value: set the environment variable TAG",
		"/m/a.yaml:9:28: spec.containers[0].env[0].value: $(TAG) has no value: set the environment variable TAG"}
	if len(pods) != 0 || len(got) != 2 || !strings.Contains(strings.Join(got, "|"), want[0]) || !strings.Contains(strings.Join(got, "|"), want[1]) {
		t.Errorf("%d pods, problems\n%s", len(pods), strings.Join(got, "\n"))
	}
}
