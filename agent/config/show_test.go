package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

// What /configz says is a file of settings that is read as the same settings,
// for the default and for another value of each field.
func TestConfigzIsAFileOfTheSameSettings(t *testing.T) {
	texts := []string{"", "resolvConf: ''", "cgroupDriver: none", "serializeImagePulls: false", "enforceNodeAllocatable: [none]",
		"evictionHard: {memory.available: 100Mi, nodefs.available: 12.5%}", "systemReserved: {cpu: 500m, pid: '100'}\nkubeReserved: {memory: 1Gi}"}
	for name, value := range otherValues() {
		texts = append(texts, asFile(name, value))
	}
	read := func(text string) Config {
		t.Helper()
		c, wrong := readText(t, t.TempDir(), text, Default())
		if wrong != "" {
			t.Fatalf("%s\n%s", text, wrong)
		}
		return c
	}
	for _, text := range texts {
		want := read(text)
		shown, err := json.Marshal(want.Configz())
		if err != nil {
			t.Fatal(err)
		}
		if got := read(string(shown)); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%q: %s\ngot  %+v\nwant %+v", text, shown, got, want)
		}
	}
}

// What is documented as a setting's default is what /configz shows where the file
// does not say, and each setting is shown.
func TestConfigzShowsTheDefaults(t *testing.T) {
	var text strings.Builder
	if err := PrintDefaults(&text); err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(Default().Configz())
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(text.String()), &want), json.Unmarshal(shown, &got)); err != nil {
		t.Fatal(err)
	}
	if len(want) < 50 || !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("shown %v\ndocumented %v", got, want)
	}
}
