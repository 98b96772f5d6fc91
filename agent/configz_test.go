package agent

import (
	"encoding/json"
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
		if name != "failSwapOn" { // the machine may have some
			texts = append(texts, asFile(name, value))
		}
	}
	complete := func(text string) Config {
		t.Helper()
		c, wrong := readText(t, t.TempDir(), text, Config{Listen: DefaultListen, Manifests: "/m", NodeName: "n"})
		if wrong != "" {
			t.Fatalf("%s\n%s", text, wrong)
		}
		c, err := c.complete()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, text := range texts {
		want := complete(text)
		shown, err := json.Marshal(want.configz())
		if err != nil {
			t.Fatal(err)
		}
		if got := complete(string(shown)); !equality.Semantic.DeepEqual(got, want) || len(changed(got, want)) > 0 {
			t.Errorf("%q: %s\ngot  %+v\nwant %+v", text, shown, got, want)
		}
	}
}

// What is documented as a field's default is what /configz shows where the file
// does not say, and each field is shown.
func TestConfigzShowsTheDefaults(t *testing.T) {
	c, err := Config{Listen: DefaultListen, Manifests: "/m", NodeName: "n"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	fields := c.fields()
	for _, row := range configRows() {
		value, shown := fields[row.name]
		delete(fields, row.name)
		got, err := yaml.Marshal(value)
		if err != nil || !shown {
			t.Fatalf("%s: %v, shown %v", row.name, err, shown)
		}
		var want, is any
		if yaml.Unmarshal([]byte(row.fallback), &want) != nil || yaml.Unmarshal(got, &is) != nil {
			t.Fatalf("%s: %s, %s", row.name, row.fallback, got)
		}
		switch row.name {
		case "staticPodPath", "nodeName": // given above
			continue
		}
		if !equality.Semantic.DeepEqual(is, want) {
			t.Errorf("%s is %s, documented as %s", row.name, strings.TrimSpace(string(got)), row.fallback)
		}
	}
	for name := range fields {
		t.Errorf("%s is shown and not documented", name)
	}
}
