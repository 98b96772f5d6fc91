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
		text := asFile(name, value)
		if name == "shutdownGracePeriodCriticalPods" {
			text += "\nshutdownGracePeriod: 1m" // of which it is a part
		}
		texts = append(texts, text)
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

// What may be a secret is not shown, and a change of it is noticed all the same.
func TestConfigzHidesSecrets(t *testing.T) {
	text := "staticPodURL: https://me:secret@h/x?key=secret\nstaticPodURLHeader: {Authorization: Bearer secret, X: [secret1, secret2], Num: [7, true]}\n"
	c, wrong := readText(t, t.TempDir(), text, Default())
	shown, err := json.Marshal(c.Configz())
	if err != nil || wrong != "" || strings.Contains(string(shown), "secret") || !strings.Contains(string(shown), `"https://h/x?..."`) {
		t.Errorf("%s, %v, %s", wrong, err, shown)
	}
	if h := c.ManifestURLHeader; len(h["X"]) != 2 || h["X"][0] != "secret1" || strings.Join(h["Num"], " ") != "7 true" || h["Authorization"][0] != "Bearer secret" {
		t.Errorf("headers %v", h)
	}
	other, _ := readText(t, t.TempDir(), strings.ReplaceAll(text, "secret2", "secret3"), Default())
	if _, later := Changed(c, other); strings.Join(later, " ") != "staticPodURLHeader" {
		t.Errorf("changed %v", later)
	}
}
