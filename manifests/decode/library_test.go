package decode

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"
	kubelet "sigs.k8s.io/yaml"
)

// What follows is what the libraries do that this package works around. A test that
// fails says that a workaround may go.

// Hence asJSON is not strict.
func TestStrictYAMLTakesMergedFieldsForDuplicates(t *testing.T) {
	if _, err := kubelet.YAMLToJSONStrict([]byte("{<<: {a: 1}, a: 2}")); err == nil {
		t.Error("a merge key beside a field that it has too is accepted")
	}
}

// Hence pair refuses what stands before a merge key that has it too.
func TestTheKubeletsYAMLLetsMergeKeysWin(t *testing.T) {
	if got, err := kubelet.YAMLToJSON([]byte("{a: 2, <<: {a: 1}}")); err != nil || string(got) != `{"a":1}` {
		t.Errorf("got %s, %v", got, err)
	}
}

// Hence named keys are held against those of the JSON.
func TestTheKubeletsYAMLSpoilsLargeKeys(t *testing.T) {
	if got, err := kubelet.YAMLToJSON([]byte("1e300: x")); err != nil || string(got) != `{".inf":"x"}` {
		t.Errorf("got %s, %v", got, err)
	}
}

// Hence asYAML.
func TestTheKubeletsYAMLMisreadsJSON(t *testing.T) {
	for _, s := range []string{`"\ud83d\ude00"`, `"\/"`, "\"\x7f\"", "\"a\u0085b\"", "\"a\u2028 b\""} {
		got, err := kubelet.YAMLToJSON([]byte(s))
		var read, meant string
		if err := json.Unmarshal([]byte(s), &meant); err != nil {
			t.Fatal(err)
		}
		if err == nil && json.Unmarshal(got, &read) == nil && read == meant {
			t.Errorf("%q is read as it is meant", s)
		}
	}
}

// Hence the opening of asYAML.
func TestYAMLKeepsTokensOfJSONInHand(t *testing.T) {
	text := `{"a":` + strings.Repeat(`{"b":1,"c":`, 40) + "1" + strings.Repeat("}", 41)
	cost := func(text string) uint64 {
		return allocated(func() { _, _ = kubelet.YAMLToJSON([]byte(text)) })
	}
	if plain, opened := cost(text), cost(opening+text); plain < opened+30<<10 {
		t.Errorf("%d bytes, %d with an opening", plain, opened)
	}
}

// Hence bearable.
func TestTheLibraryWritesQuantitiesOut(t *testing.T) {
	if n := allocated(func() { _, _ = resource.ParseQuantity("1e-99999") }); n < 100<<10 {
		t.Errorf("a quantity costs %d bytes", n)
	}
}

// Hence fitting.
func TestTheLibrarySaysOneMisfitAndNotAlwaysWhere(t *testing.T) {
	unknown, err := kjson.UnmarshalStrict([]byte(`{"foo":1,"spec":{"priority":"a","hostNetwork":1}}`), &v1.Pod{})
	if len(unknown) != 0 || err == nil || strings.Contains(err.Error(), "hostNetwork") {
		t.Errorf("it says %v, %v", unknown, err)
	}
	_, err = kjson.UnmarshalStrict([]byte(`{"spec":{"overhead":{"cpu":"lots"}}}`), &v1.Pod{})
	if typed := (*json.UnmarshalTypeError)(nil); err == nil || errors.As(err, &typed) || strings.Contains(err.Error(), "overhead") {
		t.Errorf("it says %v", err)
	}
}

// allocated returns how many bytes a function allocates in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
