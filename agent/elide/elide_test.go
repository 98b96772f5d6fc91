package elide

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// withEnv is a pod whose container has variables A, B, C and so on.
func withEnv(values ...string) *v1.Pod {
	p := &v1.Pod{}
	c := v1.Container{Name: "c"}
	for k, value := range values {
		c.Env = append(c.Env, v1.EnvVar{Name: string(rune('A' + k)), Value: value})
	}
	p.Spec.Containers = []v1.Container{c}
	return p
}

func TestAValueIsHiddenInEveryForm(t *testing.T) {
	inJSON := func(s string) string { b, _ := json.Marshal(map[string]string{"said": s}); return string(b) }
	hostile := "pa\"s's\\w$ö\trd&<9>"
	rows := []struct{ name, value, text, want string }{
		{"as it is", "hunter2", "a hunter2 b", "a <elided> b"},
		{"at both ends", "hunter2", "hunter2 hunter2", "<elided> <elided>"},
		{"too short", "on", "it is on", "it is on"},
		{"nothing there", "hunter2", "hunter", "<elided>"},
		{"without the newline at its end", "s3cret-pw\n", "login failed with s3cret-pw", "login failed with <elided>"},
		{"without space around it", "  s3cret pw ", "[s3cret pw]", "[<elided>]"},
		{"a line of it", "-----BEGIN KEY-----\n  abcdef\n", "bad line: abcdef!", "bad line: <elided>!"},
		{"with a dollar", "pa$$word9", "failed with pa$word9", "failed with <elided>"},
		{"with dollars as written", "pa$$word9", "failed with pa$$word9", "failed with <elided>"},
		{"by %q", hostile, fmt.Sprintf("command %q timed out", "x "+hostile+" y"), `command "x <elided> y" timed out`},
		{"by %+q", hostile, fmt.Sprintf("%+q", hostile), `"<elided>"`},
		{"by %q twice", hostile, fmt.Sprintf("%q", fmt.Sprintf("%q", hostile)), `"\"<elided>\""`},
		{"in JSON", hostile, inJSON(hostile), `{"said":"<elided>"}`},
		{"in JSON, quoted", hostile, fmt.Sprintf("%q", inJSON(hostile)), `"{\"said\":\"<elided>\"}"`},
		{"in a query", hostile, "GET /?p=" + url.QueryEscape(hostile), "GET /?p=<elided>"},
		{"in a path", hostile, "GET /" + url.PathEscape(hostile), "GET /<elided>"},
		{"in a shell's quotes", hostile, `sh -c 'x ` + strings.ReplaceAll(hostile, `'`, `'\''`) + `'`, "sh -c 'x <elided>'"},
		{"in a shell's other quotes", hostile, `'` + strings.ReplaceAll(hostile, `'`, `'"'"'`) + `'`, "'<elided>'"},
		{"in a shell's quotes, quoted", hostile, fmt.Sprintf("%q", `'`+strings.ReplaceAll(hostile, `'`, `'\''`)+`'`), `"'<elided>'"`},
		{"by a shell's printf %q", `pa"s's\w$rd&<9> x`, `pa\"s\'s\\w\$rd\&\<9\>\ x?`, "<elided>?"},
		{"its beginning, cut off", "hunter2", "it said hunt", "it said <elided>"},
		{"its beginning, cut off with dots", "hunter2", "it said hunte...", "it said <elided>..."},
		{"its beginning, cut off before another text", "hunter2", "a: it said hunter; b: it is ill", "a: it said <elided>; b: it is ill"},
		{"its ending, cut off", "hunter2", "nter2 is refused", "<elided> is refused"},
		{"its ending, cut off behind another text", "hunter2", "OOMKilled: nter2 is refused", "OOMKilled: <elided> is refused"},
		{"a short beginning", "hunter2", "it said hun", "it said hun"},
		{"the mark itself", "elided", "it is elided", "it is <elided>"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := Of(withEnv(row.value)).Hide(row.text); got != row.want {
				t.Errorf("%q becomes %q, want %q", row.text, got, row.want)
			}
		})
	}
}

func TestAValueIsHiddenAsTheContainerGetsIt(t *testing.T) {
	rows := []struct {
		name, text, want string
		values           []string
	}{
		{"of another variable", "to pg://fish@db now", "to <elided> now", []string{"fi", "pg://$(A)sh@db"}},
		{"through two others", "x-aabbcc-x", "<elided>", []string{"aa", "$(A)bb", "x-$(B)cc-x"}},
		{"of one that nobody knows", "x $(NONE)! y", "x <elided> y", []string{"$(NONE)!"}},
		{"of one that comes later", "x $(B)! y", "x <elided> y", []string{"$(B)!", "later"}},
		{"not of an escaped one", "x $(A)! y", "x <elided> y", []string{"first", "$$(A)!"}},
		{"a lone dollar", "cost $5 or $(x", "<elided>", []string{"cost $5 or $(x"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := Of(withEnv(row.values...)).Hide(row.text); got != row.want {
				t.Errorf("%q becomes %q, want %q", row.text, got, row.want)
			}
		})
	}
}

// What the machine gives a variable is not known here, and what the manifest
// writes around it is secret all the same.
func TestWhatStandsAroundAnAddressIsHidden(t *testing.T) {
	p := withEnv("", "user:hunter2@$(A)/fish", "<$(B)>")
	p.Spec.Containers[0].Env[0].ValueFrom = &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "status.podIP"}}
	if got, want := Of(p).Hide("<user:hunter2@10.0.0.7/fish> is refused"), "<<elided>10.0.0.7<elided>> is refused"; got != want {
		t.Errorf("it becomes %q, want %q", got, want)
	}
}

func TestValuesThatOverlapAreHiddenTogether(t *testing.T) {
	for _, values := range [][]string{{"hunter2", "hunter22", "ter22xy", "b hun"}, {"b hun", "ter22xy", "hunter22", "hunter2"}} {
		if got, want := Of(withEnv(values...)).Hide("ab hunter22xyz, hunter2."), "a<elided>z, <elided>."; got != want {
			t.Errorf("with %q it becomes %q, want %q", values, got, want)
		}
	}
}

func TestHeadersAndInitContainersAreHiddenToo(t *testing.T) {
	get := func(value string) *v1.HTTPGetAction {
		return &v1.HTTPGetAction{HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: value}}}
	}
	p := withEnv("own-value")
	c := &p.Spec.Containers[0]
	c.ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: get("Bearer abc")}}
	c.LivenessProbe = &v1.Probe{}
	c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{HTTPGet: get("Bearer def")}}
	p.Spec.InitContainers = withEnv("init-value").Spec.Containers
	if got, want := Of(p).Hide("own-value init-value Bearer abc Bearer def"), "<elided> <elided> <elided> <elided>"; got != want {
		t.Errorf("it becomes %q, want %q", got, want)
	}
}

func TestAHugeValueIsHiddenInShortTexts(t *testing.T) {
	value := strings.Repeat("0123456789abcdef", 10<<10)
	if got := Of(withEnv(value)).Hide("said " + value[:2000]); got != "said <elided>" {
		t.Errorf("it becomes %.60q", got)
	}
	if n := len(Of(withEnv(value)).Hide("")); n != 0 {
		t.Errorf("no text becomes one of %d bytes", n)
	}
}
