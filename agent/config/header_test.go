package config

import (
	"fmt"
	"strings"
	"testing"
)

// A flag says a header as a person writes it, or as a kubelet's does.
func TestHeadersMayBeGivenByAFlag(t *testing.T) {
	const by = "--manifest-url-header"
	rows := []struct {
		what  string
		given []string
		want  string
	}{
		{"one", []string{"X-Node=edge7"}, "map[X-Node:[edge7]]"},
		{"a value with all in it", []string{"authorization=Basic a:b=,c"}, "map[Authorization:[Basic a:b=,c]]"},
		{"several", []string{"A=1", "b=2", "a=3"}, "map[A:[1 3] B:[2]]"},
		{"as for a kubelet", []string{"a:hello, b: again,c:wor:ld=", "b:beautiful"}, "map[A:[hello] B:[again beautiful] C:[wor:ld=]]"},
		{"an empty value", []string{"A="}, "map[A:[]]"},
		{"no value", []string{"secret"}, by + ": write NAME=VALUE, or NAME:VALUE,NAME:VALUE as for a kubelet"},
		{"half of it as for a kubelet", []string{"a:secret,secret"}, by + ": write NAME=VALUE, or NAME:VALUE,NAME:VALUE as for a kubelet"},
		{"no name", []string{"=secret"}, by + ": is not the name of a header: it is made of letters, digits and dashes"},
		{"a bad name", []string{"secret b=secret"}, by + ": is not the name of a header: it is made of letters, digits and dashes"},
		{"two lines", []string{"A=secret\nB=c"}, by + ": has a control character in its value, such as a line break"},
	}
	for _, r := range rows {
		flag := func(name string) (string, string) {
			if name == "manifest-url-header" {
				return strings.Join(r.given, ListSeparator), by
			}
			return "", ""
		}
		c, _, err := Read(flag)
		got := fmt.Sprint(c.ManifestURLHeader)
		if err != nil {
			got = err.Error()
		}
		if got != r.want {
			t.Errorf("%s: %s, want %s", r.what, got, r.want)
		}
	}
}

// Headers of flags are as secret as those of a file, and win over them.
func TestHeadersOfAFlagAreHidden(t *testing.T) {
	base, _ := readText(t, t.TempDir(), "staticPodURLHeader: {Old: [x]}", Default())
	for _, r := range rows(&base) {
		if r.flag == "manifest-url-header" {
			if err := r.parse("--x", "A=secret"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if shown := fmt.Sprint(base.Configz()); strings.Contains(shown, "secret") || strings.Contains(shown, "Old") || !strings.Contains(shown, "A:[<elided>]") {
		t.Errorf("%s", shown)
	}
}
