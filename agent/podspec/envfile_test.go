package podspec

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestEnvFilesAreReadAsAShellWould(t *testing.T) {
	long := strings.Repeat("k", 128)
	for _, row := range []struct {
		what, text string
		want       map[string]string
		err        string
	}{
		{"nothing", "", map[string]string{}, ""},
		{"variables", "A='1'\nB='2'\n", map[string]string{"A": "1", "B": "2"}, ""},
		{"no line break at the end", "A='1'", map[string]string{"A": "1"}, ""},
		{"spaces and comments", "# c='x'\n\n  A = '1'  \n\t# more\nB='a # b'\r\n", map[string]string{"A": "1", "B": "a # b"}, ""},
		{"several lines", "A='one\ntwo\n# three'\nB='2'", map[string]string{"A": "one\ntwo\n# three", "B": "2"}, ""},
		{"nothing is expanded", `A='$B \n "x"'`, map[string]string{"A": `$B \n "x"`}, ""},
		{"the last counts", "A='1'\nA='2'\n", map[string]string{"A": "2"}, ""},
		{"an empty value", "A=''", map[string]string{"A": ""}, ""},
		{"a long key", long + "='1'", map[string]string{long: "1"}, ""},
		{"a longer key", long + "k='1'", nil, "line 1: the name before ="},
		{"without quotes", "A='1'\nB=2\n", nil, "line 2: the value must stand in single quotes"},
		{"other quotes", `A="1"`, nil, "line 1: the value must stand in single quotes"},
		{"adjacent strings", "A='1''2'", nil, "line 1: nothing may stand behind"},
		{"something behind", "A='1' # c", nil, "line 1: nothing may stand behind"},
		{"a quote that stays open", "\nB='x\ny'\nA='1\n2\n", nil, "line 4: the quote of the value is not closed"},
		{"no variable", "A='1'\nexport\nB='2'", nil, "line 2: want NAME='value'"},
		{"no name", "='1'", nil, "line 1: the name before ="},
		{"a name of two words", "export A='1'", nil, "line 1: the name before ="},
	} {
		got, err := parseEnvFile(row.text)
		if !maps.Equal(got, row.want) || (err == nil) != (row.err == "") || err != nil && !strings.HasPrefix(err.Error(), row.err) {
			t.Errorf("%s: %q, %v", row.what, got, err)
		}
	}
}

func TestAVariableHasTheValueOfAFile(t *testing.T) {
	yes, no := true, false
	for _, row := range []struct {
		what, key string
		optional  *bool
		content   EnvFileContent
		want      string
	}{
		{"a key", "K", &no, EnvFileContent{Data: []byte("K='$(X)'")}, "X=1 V=$(X) Y=$(X)"},
		{"a missing key", "K", &no, EnvFileContent{Data: []byte("L='secret'")}, `env V: environment variable key "K" not found in file d/x of volume v`},
		{"a missing key that is optional", "K", &yes, EnvFileContent{Data: []byte("L='1'")}, "X=1 Y=$(V)"},
		{"a missing file of an optional key", "K", &yes, EnvFileContent{Err: errors.New("no such file")}, "env V: couldn't parse env file: d/x of volume v: no such file"},
		{"a wrong file of an optional key", "K", &yes, EnvFileContent{Data: []byte("K=secret")}, "env V: couldn't parse env file: d/x of volume v: line 1: the value must stand in single quotes"},
	} {
		c := &v1.Container{Env: []v1.EnvVar{{Name: "X", Value: "1"}, {Name: "V", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "v", Path: "d/x", Key: row.key, Optional: row.optional}}}, {Name: "Y", Value: "$(V)"}}}
		files := EnvFilesOf(c)
		if len(files) != 1 {
			t.Fatalf("the files are %v", files)
		}
		e, err := environment(&v1.Pod{}, c, Input{EnvFiles: map[EnvFile]EnvFileContent{files[0]: row.content}}, specNode())
		got := fmt.Sprint(err)
		if err == nil {
			var all []string
			for _, kv := range e.list() {
				all = append(all, kv.Key+"="+string(kv.Value))
			}
			got = strings.Join(all, " ")
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.what, got, row.want)
		}
	}
}
